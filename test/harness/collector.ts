// An OpenTelemetry collector that keeps what it is sent as OTLP over HTTP, in JSON.

/** A span as it was exported; "" as the parent of a root. */
export interface ExportedSpan {
  /** Who made it: "deno", or "tensorlet". */
  readonly scope: string;
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** 2 = an error. */
  readonly status: { readonly code: number; readonly message: string };
  readonly events: readonly { readonly name: string; readonly attributes: ExportedSpan["attributes"] }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
}

interface KeyValue {
  readonly key: string;
  readonly value: Readonly<Record<string, string | number | boolean>>;
}

type Data<T extends { readonly attributes: unknown }> = Omit<T, "attributes"> & {
  readonly attributes: readonly KeyValue[];
};

interface TracesData {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly {
      readonly scope: { readonly name: string };
      readonly spans: readonly (Omit<Data<ExportedSpan>, "events"> & {
        readonly events: readonly Data<ExportedSpan["events"][number]>[];
      })[];
    }[];
  }[];
}

/** A collector on a free port. `/traceparent` answers with the header of that name, `/held` so when it is released. */
export class Collector implements AsyncDisposable {
  readonly spans: ExportedSpan[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #held = Promise.withResolvers<void>();
  readonly #released = Promise.withResolvers<void>();

  constructor() {
    this.#server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/held") {
        this.#held.resolve();
        await this.#released.promise;
      }
      if (pathname === "/traceparent" || pathname === "/held") {
        return new Response(request.headers.get("traceparent") ?? "");
      }
      const body = await request.text();
      if (pathname === "/v1/traces") this.#keep(JSON.parse(body));
      return Response.json({});
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** Resolves when a request is held. */
  get held(): Promise<void> {
    return this.#held.promise;
  }

  /** Answers it. */
  release(): void {
    this.#released.resolve();
  }

  /** What has a Deno process export its spans to here. */
  get env(): Readonly<Record<string, string>> {
    return {
      OTEL_DENO: "true",
      OTEL_DENO_CONSOLE: "ignore",
      OTEL_EXPORTER_OTLP_ENDPOINT: this.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    };
  }

  #keep({ resourceSpans }: TracesData): void {
    for (const { scopeSpans } of resourceSpans) {
      for (const { scope, spans } of scopeSpans) {
        for (const { attributes, events, ...span } of spans) {
          const named = events.map(({ name, attributes }) => ({ name, attributes: valuesOf(attributes) }));
          this.spans.push({ ...span, scope: scope.name, attributes: valuesOf(attributes), events: named });
        }
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

function valuesOf(attributes: readonly KeyValue[]): ExportedSpan["attributes"] {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]!]));
}
