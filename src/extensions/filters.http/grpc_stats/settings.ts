// What main tells the workers of a filter for the stats of gRPC.

export interface GrpcStatsSettings {
  /** Whatever methods requests name have counts of their own. */
  readonly countsAllMethods: boolean;
  /** Only these have, as `service.method`. */
  readonly methods: readonly string[];
  readonly countsTimes: boolean;
}
