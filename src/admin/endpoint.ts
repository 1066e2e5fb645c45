// What an admin endpoint is: a row of the table in routes.ts, and the response that its handler returns.

import type { Loggers } from '../log/index.ts';
import type { AdminQuery } from './query.ts';
import type { ClustersView, ListenersView, ServerCommands, ServerView, StatsView } from './views.ts';

export interface AdminContext {
  readonly server: ServerView;
  readonly clusters: ClustersView;
  readonly listeners: ListenersView;
  readonly stats: StatsView;
  readonly loggers: Loggers;
  readonly commands: ServerCommands;
}

export interface AdminResponse {
  readonly status: number;
  readonly contentType: string;
  /** Headers beyond those of every response. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whole, or piece by piece as the client takes it. */
  readonly body: string | AsyncIterable<string>;
  /** Called when the response has been handed to the system, or the client is gone. */
  readonly afterSent?: () => void;
}

interface ParameterBase {
  readonly id: string;
  readonly help: string;
}

export type EndpointParameter =
  | (ParameterBase & { readonly kind: 'flag' })
  | (ParameterBase & { readonly kind: 'text' })
  | (ParameterBase & { readonly kind: 'choice'; readonly choices: readonly string[] });

export interface Endpoint {
  /** Matched exactly, without query. */
  readonly path: string;
  readonly help: string;
  /** Changes the server: only POST may call it. */
  readonly mutates: boolean;
  readonly parameters: readonly EndpointParameter[];
  readonly handle: (context: AdminContext, query: AdminQuery) => AdminResponse | Promise<AdminResponse>;
}

export const TEXT = 'text/plain; charset=UTF-8';
export const HTML = 'text/html; charset=UTF-8';
export const JSON_TYPE = 'application/json';

export function textResponse(body: AdminResponse['body'], status = 200): AdminResponse {
  return { status, contentType: TEXT, body };
}

export function jsonResponse(body: string): AdminResponse {
  return { status: 200, contentType: JSON_TYPE, body };
}
