// An access-log service of gRPC, as those of others are: it knows the messages by their names, from a description of its own.

import { Server, ServerCredentials, type ServerReadableStream, type sendUnaryData } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { untilEqual } from './eventually.ts';

type Plain = Record<string, unknown>;

const { root } = protobuf.parse(
  `syntax = "proto3";
  message Struct { map<string, Value> fields = 1; }
  message Value { oneof kind { int32 null_value = 1; double number_value = 2; string string_value = 3; bool bool_value = 4; } }
  message Metadata { map<string, Struct> filter_metadata = 1; }
  message UInt32Value { uint32 value = 1; }
  message Timestamp { int64 seconds = 1; int32 nanos = 2; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message SocketAddress { int32 protocol = 1; string address = 2; uint32 port_value = 3; }
  message Pipe { string path = 1; }
  message Address { SocketAddress socket_address = 1; Pipe pipe = 2; }
  message SubjectAltName { oneof san { string uri = 1; string dns = 2; } }
  message CertificateProperties { repeated SubjectAltName subject_alt_name = 1; string subject = 2; string issuer = 3; }
  message TLSProperties {
    int32 tls_version = 1; UInt32Value tls_cipher_suite = 2; string tls_sni_hostname = 3;
    CertificateProperties local_certificate_properties = 4; CertificateProperties peer_certificate_properties = 5; }
  message Unauthorized { int32 reason = 1; }
  message ResponseFlags {
    bool no_healthy_upstream = 2; bool upstream_connection_failure = 6; bool no_route_found = 9; Unauthorized unauthorized_details = 13;
    bool downstream_connection_termination = 15; bool no_cluster_found = 25; }
  message AccessLogCommon {
    double sample_rate = 1; Address downstream_remote_address = 2; Address downstream_local_address = 3;
    TLSProperties tls_properties = 4; Timestamp start_time = 5; Duration time_to_last_rx_byte = 6;
    Duration time_to_last_upstream_tx_byte = 8; Duration time_to_first_upstream_rx_byte = 9;
    Duration time_to_last_downstream_tx_byte = 12; Address upstream_remote_address = 13; Address upstream_local_address = 14;
    string upstream_cluster = 15; ResponseFlags response_flags = 16; Metadata metadata = 17;
    string upstream_transport_failure_reason = 18; string route_name = 19; Address downstream_direct_remote_address = 20;
    map<string, string> custom_tags = 22; Duration duration = 23; uint32 upstream_request_attempt_count = 24;
    string connection_termination_details = 25; string stream_id = 26; int32 access_log_type = 33; }
  message HTTPRequestProperties {
    int32 request_method = 1; string scheme = 2; string authority = 3; UInt32Value port = 4; string path = 5; string user_agent = 6;
    string referer = 7; string forwarded_for = 8; string request_id = 9; string original_path = 10; uint64 request_headers_bytes = 11;
    uint64 request_body_bytes = 12; map<string, string> request_headers = 13; }
  message HTTPResponseProperties {
    UInt32Value response_code = 1; uint64 response_headers_bytes = 2; uint64 response_body_bytes = 3;
    map<string, string> response_headers = 4; map<string, string> response_trailers = 5; string response_code_details = 6; }
  message HTTPAccessLogEntry {
    AccessLogCommon common_properties = 1; int32 protocol_version = 2; HTTPRequestProperties request = 3;
    HTTPResponseProperties response = 4; }
  message ConnectionProperties { uint64 received_bytes = 1; uint64 sent_bytes = 2; }
  message TCPAccessLogEntry { AccessLogCommon common_properties = 1; ConnectionProperties connection_properties = 2; }
  message HTTPAccessLogEntries { repeated HTTPAccessLogEntry log_entry = 1; }
  message TCPAccessLogEntries { repeated TCPAccessLogEntry log_entry = 1; }
  message Locality { string region = 1; string zone = 2; }
  message Node { string id = 1; string cluster = 2; Locality locality = 4; }
  message Identifier { Node node = 1; string log_name = 2; }
  message StreamAccessLogsMessage { Identifier identifier = 1; HTTPAccessLogEntries http_logs = 2; TCPAccessLogEntries tcp_logs = 3; }`,
  { keepCase: true },
);
const MESSAGE = root.lookupType('StreamAccessLogsMessage');

export interface LoggedAddress {
  readonly socket_address: { readonly address: string; readonly port_value: number };
}

export interface LoggedEntry {
  readonly common_properties: Plain & {
    readonly downstream_remote_address: LoggedAddress;
    readonly upstream_remote_address?: LoggedAddress;
    readonly start_time: { readonly seconds: number };
    readonly custom_tags?: Readonly<Record<string, string>>;
    readonly response_flags?: Plain;
  };
  readonly protocol_version: number;
  readonly request: Plain;
  readonly response: Plain;
  readonly connection_properties?: Plain;
}

export interface LoggedMessage {
  readonly identifier?: { readonly node: Plain; readonly log_name: string };
  readonly http_logs?: { readonly log_entry: readonly LoggedEntry[] };
  readonly tcp_logs?: { readonly log_entry: readonly LoggedEntry[] };
}

const asItIs = (bytes: Buffer): Buffer => bytes;

/** What becomes of streams whose client has sent a message. */
export type StreamManners =
  /** They end when their clients end them. */
  | 'stays'
  /** They never end. */
  | 'silence'
  | { readonly fails: number }
  /** They end well behind as many. */
  | { readonly endsAfter: number };

export class AccessLogService implements AsyncDisposable {
  port = 0;
  /** By stream. */
  readonly streams: LoggedMessage[][] = [];
  readonly paths: string[] = [];
  /** Streams that their clients have ended. */
  ended = 0;
  manners: StreamManners = 'stays';
  readonly #server = new Server();

  static async start({
    port = 0,
    credentials = ServerCredentials.createInsecure(),
  }: {
    port?: number;
    credentials?: ServerCredentials;
  } = {}): Promise<AccessLogService> {
    const service = new AccessLogService();
    for (const generation of ['v2', 'v3']) service.#serve(generation);
    service.port = await new Promise<number>((resolve, reject) => {
      service.#server.bindAsync(`127.0.0.1:${port}`, credentials, (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    });
    return service;
  }

  get messages(): readonly LoggedMessage[] {
    return this.streams.flat();
  }

  get entries(): readonly LoggedEntry[] {
    return this.messages.flatMap(({ http_logs, tcp_logs }) => [
      ...(http_logs?.log_entry ?? []),
      ...(tcp_logs?.log_entry ?? []),
    ]);
  }

  async until(entries: number): Promise<void> {
    await untilEqual(entries, () => this.entries.length, 'entries at the service');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.forceShutdown();
    await Promise.resolve();
  }

  #serve(generation: string): void {
    const path = `/envoy.service.accesslog.${generation}.AccessLogService/StreamAccessLogs`;
    const StreamAccessLogs = (call: ServerReadableStream<Buffer, Buffer>, reply: sendUnaryData<Buffer>): void => {
      const messages: LoggedMessage[] = [];
      this.streams.push(messages);
      this.paths.push(path);
      call.on('error', () => {});
      call.on('data', (bytes: Buffer) => {
        const options = { longs: Number, arrays: true };
        messages.push(MESSAGE.toObject(MESSAGE.decode(bytes), options) as unknown as LoggedMessage);
        const { manners } = this;
        if (typeof manners === 'string') return;
        if ('fails' in manners) reply({ code: manners.fails, details: 'no' });
        else if (messages.length === manners.endsAfter) reply(null, Buffer.alloc(0));
      });
      call.on('end', () => {
        this.ended += 1;
        if (this.manners === 'stays') reply(null, Buffer.alloc(0));
      });
    };
    this.#server.addService(
      {
        StreamAccessLogs: {
          path,
          requestStream: true,
          responseStream: false,
          requestSerialize: asItIs,
          requestDeserialize: asItIs,
          responseSerialize: asItIs,
          responseDeserialize: asItIs,
        },
      },
      { StreamAccessLogs },
    );
  }
}
