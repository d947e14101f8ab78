// The part of @std/assert that this project's tests use, over node:assert: for machines that cannot reach JSR.
import nodeAssert from "node:assert/strict";

// deno-lint-ignore no-explicit-any
type ErrorClass<E extends Error> = abstract new (...args: any[]) => E;

export class AssertionError extends Error {
  override name = "AssertionError";
}

export function assert(expr: unknown, msg = "Expected a truthy value"): asserts expr {
  if (!expr) throw new AssertionError(msg);
}

export function assertFalse(expr: unknown, msg = "Expected a falsy value"): void {
  if (expr) throw new AssertionError(msg);
}

export function assertEquals<T>(actual: T, expected: T, msg?: string): void {
  nodeAssert.deepStrictEqual(actual, expected, msg);
}

export function assertNotEquals<T>(actual: T, expected: T, msg?: string): void {
  nodeAssert.notDeepStrictEqual(actual, expected, msg);
}

export function assertStrictEquals<T>(actual: unknown, expected: T, msg?: string): asserts actual is T {
  nodeAssert.strictEqual(actual, expected, msg);
}

export function assertExists<T>(actual: T, msg?: string): asserts actual is NonNullable<T> {
  if (actual === undefined || actual === null) throw new AssertionError(msg ?? `Expected a value, got ${actual}`);
}

export function assertInstanceOf<E extends Error>(
  actual: unknown,
  type: ErrorClass<E>,
  msg?: string,
): asserts actual is E {
  if (!(actual instanceof type)) throw new AssertionError(msg ?? `Expected an instance of ${type.name}, got ${actual}`);
}

export function assertStringIncludes(actual: string, expected: string, msg?: string): void {
  if (!actual.includes(expected)) {
    throw new AssertionError(msg ?? `Expected ${JSON.stringify(actual)} to include ${JSON.stringify(expected)}`);
  }
}

export function assertMatch(actual: string, expected: RegExp, msg?: string): void {
  nodeAssert.match(actual, expected, msg);
}

export function assertGreater(actual: number, expected: number, msg?: string): void {
  if (!(actual > expected)) throw new AssertionError(msg ?? `Expected ${actual} > ${expected}`);
}

export function assertLess(actual: number, expected: number, msg?: string): void {
  if (!(actual < expected)) throw new AssertionError(msg ?? `Expected ${actual} < ${expected}`);
}

export function assertAlmostEquals(actual: number, expected: number, tolerance = 1e-7, msg?: string): void {
  if (Object.is(actual, expected) || Math.abs(actual - expected) <= tolerance) return;
  throw new AssertionError(msg ?? `Expected ${actual} to be within ${tolerance} of ${expected}`);
}

function checkError<E extends Error>(error: unknown, type?: ErrorClass<E>, includes?: string): E {
  if (!(error instanceof Error)) throw new AssertionError(`Expected an Error to be thrown, got ${error}`);
  if (type && !(error instanceof type)) {
    throw new AssertionError(`Expected a ${type.name}, got a ${error.name}: ${error.message}`);
  }
  if (includes !== undefined) assertStringIncludes(error.message, includes);
  return error as E;
}

export function assertThrows<E extends Error = Error>(fn: () => unknown, type?: ErrorClass<E>, includes?: string): E {
  let error: unknown;
  try {
    fn();
  } catch (thrown) {
    error = thrown;
  }
  if (error === undefined) throw new AssertionError("Expected the function to throw");
  return checkError(error, type, includes);
}

export async function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  type?: ErrorClass<E>,
  includes?: string,
): Promise<E> {
  let error: unknown;
  try {
    await fn();
  } catch (thrown) {
    error = thrown;
  }
  if (error === undefined) throw new AssertionError("Expected the promise to reject");
  return checkError(error, type, includes);
}

export function fail(msg = "Failed"): never {
  throw new AssertionError(msg);
}
