// A check by gRPC: one call of grpc.health.v1.Health/Check (the health checking protocol of gRPC), of which only SERVING is well.
// Main thread.

import type { IncomingHttpHeaders } from 'node:http2';
import protobuf from 'protobufjs/minimal.js';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import type { GrpcProbeSettings } from '../../../snapshot/index.ts';
import { checkFields } from './check-fields.ts';
import { Http2Connection, type Http2Listener } from './http2-connection.ts';
import { broken, type Probe, type ProbeOrigin, type ProbeResult, type ProbeTarget, passed, wrong } from './probe.ts';

const PATH = '/grpc.health.v1.Health/Check';
const FIELDS = [
  ['te', 'trailers'],
  ['content-type', 'application/grpc'],
] as const;
/** Of a message: whether it is compressed, and its length. */
const FRAME_HEAD_BYTES = 5;
/** Of HealthCheckResponse. */
const STATUS_FIELD = 1;
const STATUS_NAMES = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];
const SERVING = 1;
const HTTP_OK = 200;
const GRPC_TYPE = /^application\/grpc(?:$|[+;])/;
/** More than any such message; the rest of one that is longer is not looked at. */
const MAX_MESSAGE_BYTES = 64 * 1024;

export class GrpcProbe implements Probe, Http2Listener {
  readonly #settings: GrpcProbeSettings;
  readonly #reusesConnection: boolean;
  readonly #connection: Http2Connection;
  readonly #message: Buffer;
  #status = 0;
  #isGrpc = false;
  /** Undefined until a head or trailers say it. */
  #grpcStatus: string | undefined;
  #grpcMessage = '';
  #body: Buffer = Buffer.alloc(0);
  #onResult: ((result: ProbeResult) => void) | undefined;

  constructor(
    settings: GrpcProbeSettings,
    reusesConnection: boolean,
    origin: ProbeOrigin | undefined,
    faults: FaultBoundary,
  ) {
    this.#settings = settings;
    this.#reusesConnection = reusesConnection;
    this.#connection = new Http2Connection(origin, faults, this);
    this.#message = requestFor(settings.serviceName);
  }

  check(target: ProbeTarget, onResult: (result: ProbeResult) => void): void {
    this.#onResult = onResult;
    this.#status = 0;
    this.#isGrpc = false;
    this.#grpcStatus = undefined;
    this.#grpcMessage = '';
    this.#body = Buffer.alloc(0);
    const fields = checkFields(this.#settings, target.authority, Buffer.alloc(0), FIELDS);
    this.#connection.ask(target, { method: 'POST', path: PATH, fields, body: this.#message });
  }

  abort(): void {
    this.#onResult = undefined;
    this.#connection.close();
  }

  onHead(status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#isGrpc = GRPC_TYPE.test(headers['content-type'] ?? '');
    this.#noteStatus(headers);
  }

  onBytes(bytes: Buffer): void {
    if (this.#body.length < MAX_MESSAGE_BYTES) this.#body = Buffer.concat([this.#body, bytes]);
  }

  onTrailers(trailers: IncomingHttpHeaders): void {
    this.#noteStatus(trailers);
  }

  onEnd(): void {
    if (!this.#reusesConnection) this.#connection.close();
    this.#tell(this.#judge());
  }

  onBroken(reason: string): void {
    this.#connection.close();
    this.#tell(broken(reason));
  }

  #noteStatus(headers: IncomingHttpHeaders): void {
    const { 'grpc-status': status, 'grpc-message': message } = headers;
    if (status === undefined) return;
    this.#grpcStatus = String(status);
    this.#grpcMessage = message === undefined ? '' : ` (${message})`;
  }

  #judge(): ProbeResult {
    if (this.#status !== HTTP_OK) return wrong(`HTTP ${this.#status}, which is no gRPC`);
    if (!this.#isGrpc) return wrong('an answer that is no gRPC');
    if (this.#grpcStatus === undefined) return wrong('an answer without grpc-status');
    if (this.#grpcStatus !== '0') return wrong(`gRPC status ${this.#grpcStatus}${this.#grpcMessage}`);
    const status = servingStatusIn(this.#body);
    if (status === undefined) return wrong('gRPC without a message of the health service');
    const name = STATUS_NAMES[status] ?? String(status);
    return status === SERVING ? passed(`gRPC ${name}`) : wrong(`gRPC ${name}`);
  }

  #tell(result: ProbeResult): void {
    const onResult = this.#onResult;
    this.#onResult = undefined;
    // An aborted check has no connection that could bring it here.
    onResult!(result);
  }
}

/** HealthCheckRequest in its frame. */
function requestFor(serviceName: string): Buffer {
  const writer = protobuf.Writer.create();
  if (serviceName !== '') writer.uint32(0x0a).string(serviceName);
  const message = writer.finish();
  const frame = Buffer.alloc(FRAME_HEAD_BYTES + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, FRAME_HEAD_BYTES);
  return frame;
}

/** @param body one frame with a HealthCheckResponse. @returns undefined where it is not. */
function servingStatusIn(body: Buffer): number | undefined {
  if (body.length < FRAME_HEAD_BYTES || body[0] !== 0) return undefined;
  if (body.length !== FRAME_HEAD_BYTES + body.readUInt32BE(1)) return undefined;
  try {
    const reader = protobuf.Reader.create(body.subarray(FRAME_HEAD_BYTES));
    let status = 0;
    while (reader.pos < reader.len) {
      const tag = reader.uint32();
      if (tag === STATUS_FIELD << 3) status = reader.int32();
      else reader.skipType(tag & 7);
    }
    return status;
  } catch {
    // Bytes that are no message.
    return undefined;
  }
}
