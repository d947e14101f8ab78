// Names and texts of a function's declaration as parts of a TypeScript module.

/** A doc comment; parts that are undefined or empty are left out. */
export function docComment(...parts: readonly (string | undefined)[]): string {
  const text = parts.filter((part) => part).join(" ").replaceAll(/\s+/g, " ").trim();
  return text === "" ? "" : `/** ${commentText(text)} */\n`;
}

/** A text that does not end the comment that it stands in. */
export function commentText(text: string): string {
  return text.replaceAll("*/", "*\\/").replaceAll(/\p{Cc}|\p{Bidi_Control}/gu, " ");
}

/** The text as a sentence: it ends with a mark. */
export function sentence(text: string | undefined): string | undefined {
  const trimmed = text?.trim();
  return trimmed && !/[.!?…]$/.test(trimmed) ? `${trimmed}.` : trimmed;
}

/** The name of a property as it is written in an object's type or literal. */
export function propertyName(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

/** A model's name as a part of the names of types: `image_classifier_v1` is `ImageClassifierV1`. */
export function pascalCase(name: string): string {
  const words = name.split(/[_-]+/).filter((word) => word !== "");
  const joined = words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
  return /^[A-Z]/.test(joined) ? joined : `Model${joined}`;
}
