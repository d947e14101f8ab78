/** Whether a text can name a request: 1 to 128 printable ASCII characters, so that it may be metadata and a log's field. */
export function isRequestId(text: string): boolean {
  return /^[\x21-\x7e]{1,128}$/.test(text);
}
