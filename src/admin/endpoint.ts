// What an admin endpoint is: a row of the table that endpoints/index.ts collects. Routing, the method check, /help, the
// home page and the documentation read it. A row stands with its handler; what its parameters may be stands in it alone, and
// the handler gets them read and checked.

import type { IncomingHttpHeaders } from 'node:http';
import type { Loggers } from '../log/index.ts';
import type { PageFiles } from './page-files.ts';
import type { Arguments, ListedParameter, Parameters } from './parameter.ts';
import type { AdminQuery } from './query.ts';
import type { AdminResponse } from './response.ts';
import type {
  ClustersView,
  ConfigView,
  EventStreamView,
  InitView,
  ListenersView,
  LookupsView,
  OverviewView,
  RuntimeView,
  ServerCommands,
  ServerView,
  StatsView,
  TapView,
} from './views/index.ts';

/** The running server. */
export interface AdminContext {
  readonly clusters: ClustersView;
  readonly commands: ServerCommands;
  /** Undefined where no sink for it is configured. */
  readonly eventStream?: EventStreamView | undefined;
  readonly config: ConfigView;
  readonly init: InitView;
  readonly listeners: ListenersView;
  readonly loggers: Loggers;
  readonly lookups: LookupsView;
  readonly runtime: RuntimeView;
  readonly server: ServerView;
  readonly stats: StatsView;
  /** Undefined where nothing is recorded. */
  readonly tap?: TapView | undefined;
  /** What only the home page shows; undefined where it is left out. */
  readonly overview?: OverviewView;
}

/** What only few endpoints look at beside their parameters. */
export interface AdminRequest {
  readonly query: AdminQuery;
  readonly headers: IncomingHttpHeaders;
  /** The client wants no body. */
  readonly isHead: boolean;
  /** Undefined without one. */
  readonly body: Buffer | undefined;
  /** Those that are served now. */
  readonly endpoints: readonly Endpoint[];
  /** Undefined where the build has left the page out. */
  readonly pageFiles?: PageFiles | undefined;
  readonly isReadOnly?: boolean;
}

export interface Endpoint {
  /** Matched exactly, without query. */
  readonly path: string;
  readonly help: string;
  /** Changes the server: only POST may call it. */
  readonly mutates: boolean;
  readonly parameters: readonly ListedParameter[];
  /** Whether the server is configured to have it; where it is not, the path is as unknown as any other. */
  readonly isServed: (context: AdminContext) => boolean;
  /** Undefined while this build has no answer: the path is then as unknown as any other. */
  readonly answer:
    | ((context: AdminContext, request: AdminRequest) => AdminResponse | Promise<AdminResponse>)
    | undefined;
}

export interface EndpointRow<Row extends Parameters> {
  readonly path: string;
  readonly help: string;
  readonly mutates?: boolean;
  /** By name, in the order in which they are listed, read and refused. */
  readonly parameters?: Row;
  /** Always when absent. */
  readonly isServed?: (context: AdminContext) => boolean;
  readonly handle?: (
    context: AdminContext,
    parameters: Arguments<Row>,
    request: AdminRequest,
  ) => AdminResponse | Promise<AdminResponse>;
}

/** Declares an endpoint. */
export function endpoint<const Row extends Parameters = Record<never, never>>(row: EndpointRow<Row>): Endpoint {
  const { path, help, mutates = false, isServed = (): boolean => true, handle } = row;
  const parameters = Object.entries(row.parameters ?? {}).map(([name, parameter]) => ({ name, ...parameter }));
  const known = new Set(parameters.map(({ name }) => name));
  return {
    path,
    help,
    mutates,
    parameters,
    isServed,
    answer:
      handle &&
      ((context, request) => {
        const values: Record<string, unknown> = {};
        for (const { name, read } of parameters) {
          const { value, refusal } = read({ name, query: request.query, context, known });
          if (refusal !== undefined) return refusal;
          values[name] = value;
        }
        return handle(context, values as Arguments<Row>, request);
      }),
  };
}
