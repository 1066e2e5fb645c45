// What mutating endpoints may have the server do.

/** What mutating endpoints may do. */
export interface ServerCommands {
  /** Begins the clean shutdown; the answer to the request is already on its way. */
  quit(): void;
  /** Has every log file opened anew by its name: access logs and the log of the process. */
  reopenLogs(): void;
  /** Sets all counters to 0. */
  resetCounters(): void;
  /** Has the health checks that clients make fail, or succeed again. */
  failHealthChecks(isFailing: boolean): void;
}
