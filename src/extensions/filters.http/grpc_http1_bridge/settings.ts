// What main tells the workers of a filter that bridges HTTP/1.1 to gRPC.

export interface GrpcBridgeSettings {
  /** Bodies of application/x-protobuf become messages of gRPC. */
  readonly upgradesProtobuf: boolean;
  readonly dropsQuery: boolean;
}
