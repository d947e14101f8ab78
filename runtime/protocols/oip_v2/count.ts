import { ModelError } from "../../core/error.ts";

/** Throws `invalid_argument` unless a tensor has as many elements as its shape says, and at most `most`. */
export function checkCount(label: string, got: number, wanted: number, most = Infinity): void {
  if (got === wanted && got <= most) return;
  const why = got > most
    ? `got more than ${most} elements, which is the most in this form`
    : `got ${got} elements, its shape takes ${wanted}`;
  throw new ModelError("invalid_argument", `Cannot read ${label}: ${why}`);
}
