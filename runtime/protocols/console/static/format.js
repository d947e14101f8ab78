// Numbers as people read them.

/**
 * Three figures that count: 0.123, 12.3, 1,234.
 *
 * @param {number} value
 */
export function formatNumber(value) {
  return value.toLocaleString(
    "en",
    Math.abs(value) < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 },
  );
}

/**
 * A share of 1 in per cent.
 *
 * @param {number} share
 */
export function formatShare(share) {
  return share > 0 && share < 0.001 ? "< 0.1 %" : `${(share * 100).toFixed(1)} %`;
}

/** @param {number | undefined} ms */
export function formatMs(ms) {
  if (ms === undefined) return "–";
  return ms < 1000 ? `${formatNumber(ms)} ms` : `${formatNumber(ms / 1000)} s`;
}

/** @param {number} bytes */
export function formatBytes(bytes) {
  return `${formatNumber(bytes / 1e6)} MB`;
}

/**
 * `float32 [?, 10]`
 *
 * @param {{ readonly dtype: string, readonly shape?: readonly number[] }} spec
 */
export function formatSpec({ dtype, shape }) {
  const dims = shape?.map((dim) => dim === -1 ? "?" : dim).join(", ");
  return `${dtype === "any" ? "any dtype" : dtype}${dims === undefined ? "" : ` [${dims}]`}`;
}
