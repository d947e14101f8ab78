// GET /v1/models: what is served, under the names that requests may use.
import { type CatalogEntry, splitVersion, unknownModel } from "../../core/catalog.ts";
import type { AdapterHost, HttpContext } from "../adapter.ts";
import { modelNotFound } from "./error.ts";

/** A function as OpenAI lists models. */
export interface Model {
  readonly id: string;
  readonly object: "model";
  /** Unix seconds: when the server began. */
  readonly created: number;
  readonly owned_by: "tensorlet";
}

/** Answers the two GET routes. */
export class Models {
  readonly #host: AdapterHost;
  readonly #created = Math.floor(Date.now() / 1000);

  constructor(host: AdapterHost) {
    this.#host = host;
  }

  /** Answers `GET /v1/models`. */
  list(): Response {
    return Response.json({ object: "list", data: this.#names().map((name) => this.#model(name)) });
  }

  /** Answers `GET /v1/models/:model`, for any name that a request may use. */
  retrieve({ params }: HttpContext): Response {
    const { model = "" } = params;
    const { catalog } = this.#host;
    if (catalog.get(...splitVersion(model))) return Response.json(this.#model(model));
    throw modelNotFound(`${unknownModel([...catalog.list()], model).message} (GET /v1/models lists them)`);
  }

  // Each function by its name; its versions too where it has several.
  #names(): readonly string[] {
    const functions = Map.groupBy<string, CatalogEntry>(this.#host.catalog.list(), ({ name }) => name);
    return [...functions].flatMap(([name, entries]) =>
      entries.length > 1 ? [name, ...entries.map(({ version }) => `${name}@${version}`)] : [name]
    );
  }

  #model(id: string): Model {
    return { id, object: "model", created: this.#created, owned_by: "tensorlet" };
  }
}
