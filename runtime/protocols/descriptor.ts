// File descriptors of the .proto files: mended so that protobuf's own descriptor pools take them, for reflection and
// for the wire check. proto-loader names map entries "Params" instead of "ParamsEntry", gives relative type names,
// and invents file names.
import { loadSync, type MessageTypeDefinition, type PackageDefinition } from "@grpc/proto-loader";
import type { ProtoFile } from "./adapter.ts";
import type { WireField, WireMessage } from "./wire_check.ts";

interface FieldDescriptor {
  readonly name: string;
  readonly number: number;
  readonly label: string;
  readonly type: string;
  typeName?: string;
}
interface MessageDescriptor {
  name: string;
  readonly field?: FieldDescriptor[];
  readonly nestedType?: MessageDescriptor[];
  readonly enumType?: { readonly name: string }[];
  readonly options?: { readonly mapEntry?: boolean };
}
interface FileDescriptor {
  name: string;
  readonly package?: string;
  readonly messageType?: MessageDescriptor[];
  readonly enumType?: { readonly name: string }[];
  readonly service?: { readonly name: string; readonly method?: { readonly name: string }[] }[];
}

/** What a .proto file defines. */
export interface Descriptor {
  readonly file: ProtoFile;
  /** By full name. */
  readonly messages: ReadonlyMap<string, WireMessage>;
}

const fileType = loadSync("google/protobuf/descriptor.proto", { enums: String })[
  "google.protobuf.FileDescriptorProto"
] as MessageTypeDefinition<object, FileDescriptor>;

/** The mended descriptor of the file that defines `packageName`. */
export function describeFile(name: string, packageName: string, definitions: PackageDefinition): Descriptor {
  const message = Object.values(definitions).find((value): value is MessageTypeDefinition<object, object> =>
    "fileDescriptorProtos" in value
  )!;
  const files = message.fileDescriptorProtos.map((bytes) => fileType.deserialize(bytes));
  const file = files.find((candidate) => candidate.package === packageName)!;
  file.name = name;
  const scope = `.${packageName}`;
  const known = new Set<string>();
  for (const type of file.messageType ?? []) renameMapEntries(type);
  walk(file, (fullName) => known.add(fullName));
  for (const type of file.messageType ?? []) resolveTypes(type, `${scope}.${type.name}`, known);
  const symbols: string[] = [];
  walk(file, (fullName) => symbols.push(fullName.slice(1)));
  return { file: { name, bytes: fileType.serialize(file), symbols }, messages: wireMessages(file, scope) };
}

function renameMapEntries(message: MessageDescriptor): void {
  for (const nested of message.nestedType ?? []) {
    const field = message.field?.find((candidate) => candidate.typeName === nested.name);
    if (nested.options?.mapEntry && field) {
      nested.name = `${camelCase(field.name)}Entry`;
      field.typeName = nested.name;
    }
    renameMapEntries(nested);
  }
}

function camelCase(name: string): string {
  return name.replace(/(^|_)(.)/g, (_match, _underscore, letter: string) => letter.toUpperCase());
}

// protobuf's rule: the innermost scope that knows the name wins.
function resolveTypes(message: MessageDescriptor, fullName: string, known: ReadonlySet<string>): void {
  for (const field of message.field ?? []) {
    if (!field.typeName || field.typeName.startsWith(".")) continue;
    for (let scope = fullName; scope !== ""; scope = scope.slice(0, scope.lastIndexOf("."))) {
      if (!known.has(`${scope}.${field.typeName}`)) continue;
      field.typeName = `${scope}.${field.typeName}`;
      break;
    }
    if (!field.typeName.startsWith(".")) field.typeName = `.${field.typeName}`;
  }
  for (const nested of message.nestedType ?? []) resolveTypes(nested, `${fullName}.${nested.name}`, known);
}

function walk(file: FileDescriptor, visit: (fullName: string) => void): void {
  const scope = file.package ? `.${file.package}` : "";
  const visitMessage = (message: MessageDescriptor, fullName: string) => {
    visit(fullName);
    for (const { name } of message.field ?? []) visit(`${fullName}.${name}`);
    for (const { name } of message.enumType ?? []) visit(`${fullName}.${name}`);
    for (const nested of message.nestedType ?? []) visitMessage(nested, `${fullName}.${nested.name}`);
  };
  for (const message of file.messageType ?? []) visitMessage(message, `${scope}.${message.name}`);
  for (const { name } of file.enumType ?? []) visit(`${scope}.${name}`);
  for (const service of file.service ?? []) {
    visit(`${scope}.${service.name}`);
    for (const { name } of service.method ?? []) visit(`${scope}.${service.name}.${name}`);
  }
}

const WIRE_TYPES: Readonly<Record<string, number>> = {
  TYPE_DOUBLE: 1,
  TYPE_FIXED64: 1,
  TYPE_SFIXED64: 1,
  TYPE_STRING: 2,
  TYPE_BYTES: 2,
  TYPE_MESSAGE: 2,
  TYPE_FLOAT: 5,
  TYPE_FIXED32: 5,
  TYPE_SFIXED32: 5,
};

function wireMessages(file: FileDescriptor, scope: string): ReadonlyMap<string, WireMessage> {
  const messages = new Map<string, WireMessage>();
  const add = (message: MessageDescriptor, fullName: string) => {
    const fields = new Map<number, WireField>();
    for (const { name, number, label, type, typeName } of message.field ?? []) {
      const wireType = WIRE_TYPES[type] ?? 0;
      fields.set(number, {
        name,
        wireType,
        repeated: label === "LABEL_REPEATED",
        packable: label === "LABEL_REPEATED" && wireType !== 2,
        text: type === "TYPE_STRING",
        // A getter: the type may be one that is not added yet, or the message itself.
        get message() {
          return type === "TYPE_MESSAGE" ? messages.get(typeName!) : undefined;
        },
      });
    }
    messages.set(fullName, { name: fullName.slice(1), fields });
    for (const nested of message.nestedType ?? []) add(nested, `${fullName}.${nested.name}`);
  };
  for (const message of file.messageType ?? []) add(message, `${scope}.${message.name}`);
  return messages;
}
