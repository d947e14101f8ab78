// Addresses as people write them.

/** `host:port`. */
export function formatAddress({ hostname, port }: { readonly hostname: string; readonly port: number }): string {
  return `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}
