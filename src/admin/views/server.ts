// The server as a whole, as the admin interface reads it.

import type { JsonObject } from '../../base/json.ts';
import type { Version } from '../../base/version.ts';
import type { Contention, MemoryReport } from '../../control-plane/index.ts';
import type { CertificatesView } from './certificates.ts';
import type { LocalityView } from './locality.ts';

/** LIVE 0, DRAINING 1, PRE_INITIALIZING 2, INITIALIZING 3 in the gauge server.state. */
export type ServerState = 'LIVE' | 'DRAINING' | 'PRE_INITIALIZING' | 'INITIALIZING';

/** The bootstrap's node after the overrides of the command line. */
export interface NodeView {
  readonly id: string;
  readonly cluster: string;
  /** Metadata as plain JSON; not shown when empty. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Not shown when all of it is empty. */
  readonly locality: LocalityView;
  /** Linked extensions; `disabled` ones may not be used by configuration. */
  readonly extensions: readonly { readonly name: string; readonly category: string; readonly disabled: boolean }[];
}

export interface ServerView {
  state(): ServerState;
  /** Milliseconds since the Unix epoch. */
  wallMs(): number;
  /** Of each listener and cluster that speaks TLS, in this order. */
  certificates(): Iterable<CertificatesView>;
  /** Whole seconds since this process started. */
  uptimeCurrentEpochSeconds(): number;
  /** Whole seconds since the first process of the chain of hot restarts started. */
  uptimeAllEpochsSeconds(): number;
  readonly version: Version;
  /** Before stats are listed: a whole flush when stats_flush_on_admin is set, else only what must be fresh. */
  beforeStatsRead(): void | Promise<void>;
  /** Whether filters of stats are RE2's, which is so unless a runtime value says that they are ECMAScript's. */
  filtersByRe2(): boolean;
  /** Keys and order of /server_info: commandLineOptionsJson of src/cli. */
  readonly commandLineOptions: JsonObject;
  readonly node: NodeView;
  /** As --hot-restart-version prints it. */
  readonly hotRestartVersion: string;
  memory(): Promise<MemoryReport>;
  /** Where profilers write. */
  readonly profilePath: string;
  /** What is on the heaps, in pprof's format; threads stand still for it. Undefined while another dump is under way. */
  heapDump(): Promise<Uint8Array | undefined>;
  /** Undefined while it is not traced; what it gives is, where the system does not tell. */
  readonly contention: (() => Promise<Contention | undefined>) | undefined;
}
