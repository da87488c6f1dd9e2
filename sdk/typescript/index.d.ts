import type { components, paths } from "./schema.js";

/** The shapes of the API's requests and answers, by name. */
export type Schemas = components["schemas"];
/** Every stable name of a refusal. */
export type Code = Schemas["Problem"]["code"];

type Method = "get" | "post" | "put" | "patch" | "delete";
type PathsWith<M extends Method> = { [P in keyof paths]: paths[P] extends { [K in M]: { responses: unknown } } ? P : never }[keyof paths];
type Operation<M extends Method, P extends keyof paths> = M extends keyof paths[P] ? NonNullable<paths[P][M]> : never;
type Content<T> = T extends { content: infer C } ? C[keyof C] : undefined;
type Success<O> = O extends { responses: infer R } ? { [S in keyof R]: S extends 200 | 201 | 202 | 204 ? Content<R[S]> : never }[keyof R] : never;
type In<O, K extends string> = O extends { parameters: { [Q in K]: infer T } } ? T : undefined;
type Query<O> = O extends { parameters: { query?: infer T } } ? T : undefined;
type Body<O> = O extends { requestBody: { content: infer C } } ? C[keyof C] : O extends { requestBody?: { content: infer C } } ? C[keyof C] | undefined : undefined;
type Field<K extends string, T> = [T] extends [undefined] ? { [Q in K]?: undefined } : undefined extends T ? { [Q in K]?: T } : { [Q in K]: T };

/** The parameters of a request of an operation. */
export type Options<M extends Method, P extends keyof paths> = Field<"path", In<Operation<M, P>, "path">> & {
  query?: Query<Operation<M, P>>;
  headers?: HeadersInit;
  signal?: AbortSignal;
} & Field<"body", Body<Operation<M, P>>>;
type Arguments<M extends Method, P extends keyof paths> = {} extends Options<M, P> ? [options?: Options<M, P>] : [options: Options<M, P>];

/** An answer of 2xx. */
export interface Answer<T> {
  data: T;
  status: number;
  headers: Headers;
}

/** An answer other than 2xx (RFC 9457). Decide by its code; "" if something between has answered for the server. */
export class Problem extends Error {
  readonly status: number;
  readonly code: Code | "";
  readonly title: string;
  readonly type: string;
  readonly instance: string;
  readonly errors: { location?: string; message: string }[];
  /** The pause in milliseconds that the server asks for; 0 = none. */
  readonly retryAfter: number;
}

/** How far the server's clock is ahead of this machine's. */
export class Clock {
  /** Whether there was an answer. */
  known: boolean;
  /** The difference in milliseconds. */
  get offset(): number;
  /** The server's time in milliseconds since 1970. */
  now(): number;
  observe(sent: number, received: number, date: string | null): void;
}

export interface Settings {
  /** Such as https://drops.example.com. */
  server: string;
  /** A service key, a user's token, or a function that returns one. */
  credential?: string | (() => string | Promise<string>);
  /** With a service key that has the scope act-as-user: the user that requests are about. */
  user?: string;
  /** How often a request is sent at most; 1 = no retries. Default 5. */
  tries?: number;
  /** A problem is thrown at once if the server asks for a longer pause, in milliseconds. Default 30,000. */
  longestWait?: number;
  /** The limit of one try, in milliseconds. Default 30,000. */
  timeout?: number;
  fetch?: typeof fetch;
  pause?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** A client; each method throws a Problem for an answer other than 2xx. */
export class Dropbell {
  constructor(settings: Settings);
  readonly clock: Clock;
  get<P extends PathsWith<"get">>(path: P, ...options: Arguments<"get", P>): Promise<Answer<Success<Operation<"get", P>>>>;
  post<P extends PathsWith<"post">>(path: P, ...options: Arguments<"post", P>): Promise<Answer<Success<Operation<"post", P>>>>;
  put<P extends PathsWith<"put">>(path: P, ...options: Arguments<"put", P>): Promise<Answer<Success<Operation<"put", P>>>>;
  patch<P extends PathsWith<"patch">>(path: P, ...options: Arguments<"patch", P>): Promise<Answer<Success<Operation<"patch", P>>>>;
  delete<P extends PathsWith<"delete">>(path: P, ...options: Arguments<"delete", P>): Promise<Answer<Success<Operation<"delete", P>>>>;
}
