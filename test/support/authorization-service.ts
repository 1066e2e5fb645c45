// An authorization service of gRPC, as those of others are: it knows the messages by their names, from a description of its
// own.

import protobuf from 'protobufjs';
import { type AskedCall, type Plain, UnaryService } from './unary-service.ts';

export const STRUCT = `
  message Struct { map<string, Value> fields = 1; }
  message Value { oneof kind {
    int32 null_value = 1; double number_value = 2; string string_value = 3; bool bool_value = 4;
    Struct struct_value = 5; ListValue list_value = 6; } }
  message ListValue { repeated Value values = 1; }`;

const { root } = protobuf.parse(
  `syntax = "proto3";
  ${STRUCT}
  message SocketAddress { int32 protocol = 1; string address = 2; uint32 port_value = 3; }
  message Pipe { string path = 1; }
  message Address { SocketAddress socket_address = 1; Pipe pipe = 2; }
  message Peer { Address address = 1; string service = 2; map<string, string> labels = 3; string principal = 4; string certificate = 5; }
  message Timestamp { int64 seconds = 1; int32 nanos = 2; }
  message HeaderValue { string key = 1; string value = 2; bytes raw_value = 3; }
  message HeaderMap { repeated HeaderValue headers = 1; }
  message HttpRequest {
    string id = 1; string method = 2; map<string, string> headers = 3; string path = 4; string host = 5;
    string scheme = 6; int64 size = 9; string protocol = 10; string body = 11; bytes raw_body = 12; HeaderMap header_map = 13; }
  message Request { Timestamp time = 1; HttpRequest http = 2; }
  message Metadata { map<string, Struct> filter_metadata = 1; }
  message TLSSession { string sni = 1; }
  message AttributeContext {
    Peer source = 1; Peer destination = 2; Request request = 4; map<string, string> context_extensions = 10;
    Metadata metadata_context = 11; TLSSession tls_session = 12; Metadata route_metadata_context = 13; }
  message CheckRequest { AttributeContext attributes = 1; }
  message BoolValue { bool value = 1; }
  message HeaderValueOption { HeaderValue header = 1; BoolValue append = 2; int32 append_action = 3; bool keep_empty_value = 4; }
  message HttpStatus { int32 code = 1; }
  message QueryParameter { string key = 1; string value = 2; }
  message DeniedHttpResponse { HttpStatus status = 1; repeated HeaderValueOption headers = 2; string body = 3; }
  message OkHttpResponse {
    repeated HeaderValueOption headers = 2; Struct dynamic_metadata = 3; repeated string headers_to_remove = 5;
    repeated HeaderValueOption response_headers_to_add = 6; repeated QueryParameter query_parameters_to_set = 7;
    repeated string query_parameters_to_remove = 8; }
  message Status { int32 code = 1; string message = 2; string details = 3; }
  message CheckResponse {
    Status status = 1; DeniedHttpResponse denied_response = 2; OkHttpResponse ok_response = 3; Struct dynamic_metadata = 4; }`,
  { keepCase: true },
);

export const CheckRequestType = root.lookupType('CheckRequest');
export const CheckResponseType = root.lookupType('CheckResponse');

export interface Asked extends AskedCall {
  readonly attributes: Plain;
}

export class AuthorizationService extends UnaryService {
  static async start(): Promise<AuthorizationService> {
    const service = new AuthorizationService(CheckRequestType, CheckResponseType, { status: {} });
    const paths = ['v2', 'v3'].map((generation) => `/envoy.service.auth.${generation}.Authorization/Check`);
    await service.listen(paths);
    return service;
  }

  get last(): Asked {
    const call = this.asked.at(-1)!;
    return { ...call, attributes: call.message.attributes as Plain };
  }
}
