// Bodies that have no form of JSON (google.api.HttpBody), through the transcoder, in calls of all four kinds.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, describe, it } from 'node:test';
import {
  type Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import 'protobufjs/ext/descriptor.js';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';
import { HTTP2 } from '../support/guarded-proxy.ts';

const BODIES = `syntax = "proto3"; package google.api;
  message HttpBody { string content_type = 1; bytes data = 2; }`;
const SERVICE = `syntax = "proto3"; package raw;
  message Asked { string what = 1; }
  message Sum { int32 messages = 1; int32 bytes = 2; string type = 3; }
  service Raw {
    rpc Upload(stream google.api.HttpBody) returns (Sum);
    rpc Download(Asked) returns (stream google.api.HttpBody);
    rpc Both(stream google.api.HttpBody) returns (stream google.api.HttpBody);
  }`;

interface HttpBody {
  readonly contentType?: string;
  readonly data?: Buffer;
}

const { root } = protobuf.parse(SERVICE, protobuf.parse(BODIES).root);
root.resolveAll();
const httpBody = root.lookupType('google.api.HttpBody');

function codec(name: string) {
  const type = root.lookupType(name);
  return {
    serialize: (fields: object) => Buffer.from(type.encode(type.fromObject(fields)).finish()),
    deserialize: (bytes: Buffer) => type.toObject(type.decode(bytes), { bytes: Buffer }) as Record<string, unknown>,
  };
}

function method(name: string, asked: string, answered: string, requestStream: boolean, responseStream: boolean) {
  const [request, response] = [codec(asked), codec(answered)];
  return {
    path: `/raw.Raw/${name}`,
    requestStream,
    responseStream,
    requestSerialize: request.serialize,
    requestDeserialize: request.deserialize,
    responseSerialize: response.serialize,
    responseDeserialize: response.deserialize,
  };
}

const RAW = {
  Upload: method('Upload', 'google.api.HttpBody', 'raw.Sum', true, false),
  Download: method('Download', 'raw.Asked', 'google.api.HttpBody', false, true),
  Both: method('Both', 'google.api.HttpBody', 'google.api.HttpBody', true, true),
};

function failure(code: number, details: string): { code: number; details: string; metadata?: Metadata } {
  return { code, details };
}

describe('bodies that have no form of JSON', () => {
  let server: Server;
  let proxy: Awaited<ReturnType<typeof createProxy>>;

  before(async () => {
    server = new Server();
    server.addService(
      RAW as never,
      {
        Upload(call: ServerReadableStream<HttpBody, object>, done: sendUnaryData<object>): void {
          const sum = { messages: 0, bytes: 0, type: '' };
          call.on('data', ({ contentType = '', data = Buffer.alloc(0) }: HttpBody) => {
            sum.messages += 1;
            sum.bytes += data.length;
            sum.type = contentType;
          });
          call.on('end', () => done(null, sum));
        },
        Download(call: ServerWritableStream<{ what?: string }, HttpBody>): void {
          const { what = '' } = call.request;
          if (what === 'missing') {
            call.emit('error', failure(status.NOT_FOUND, 'no such file'));
            return;
          }
          for (const part of what.split(',').filter((text) => text !== '')) {
            call.write({ contentType: 'text/x-parts', data: Buffer.from(part) });
          }
          if (what.endsWith('broken')) call.emit('error', failure(status.DATA_LOSS, 'half of it'));
          else call.end();
        },
        Both(call: ServerDuplexStream<HttpBody, HttpBody>): void {
          call.on('data', (body: HttpBody) => call.write({ ...body, contentType: 'text/x-echo' }));
          call.on('end', () => call.end());
        },
      } as never,
    );
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    const descriptor = (root as unknown as { toDescriptor(edition: string): protobuf.Message }).toDescriptor('proto3');
    const bytes = descriptor.$type.encode(descriptor).finish();
    const fields = {
      proto_descriptor_bin: Buffer.from(bytes).toString('base64'),
      services: ['raw.Raw'],
      auto_mapping: true,
      match_incoming_request_route: true,
    };
    const listener = filteredListener([filterOf('grpc_json_transcoder.v3.GrpcJsonTranscoder', fields)], [routeTo('/')]);
    proxy = await createProxy(bootstrapOf([listener], [clusterAt('web', port, HTTP2 as JsonObject)]));
    assert.equal(httpBody.fullName, '.google.api.HttpBody');
  });

  after(async () => {
    await proxy?.close();
    server?.forceShutdown();
  });

  /** @param pieces each is sent when the one before has been answered, or has gone. */
  async function send(path: string, pieces: readonly string[], fields: Record<string, string> = {}, echoes = false) {
    const { port } = proxy.listeners.get('main')!;
    const asked = request({ port, host: '127.0.0.1', path, method: 'POST', headers: fields, agent: false });
    const answer = new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
      asked.on('response', resolve);
      asked.on('error', reject);
    });
    let text = '';
    let onText = (): void => {};
    const ended = answer.then(async (response) => {
      for await (const chunk of response.setEncoding('latin1')) {
        text += String(chunk);
        onText();
      }
      return response;
    });
    let sent = '';
    for (const piece of pieces) {
      await new Promise<void>((resolve) => asked.write(piece, () => resolve()));
      sent += piece;
      while (echoes && text !== sent) await new Promise<void>((resolve) => (onText = resolve));
    }
    asked.end();
    const response = await ended;
    return { status: response.statusCode, type: response.headers['content-type'], text, headers: response.headers };
  }

  it('come as they are sent, in a message for each piece', async () => {
    const { status: code, text } = await send('/raw.Raw/Upload', ['x'.repeat(100_000), 'y'], { 'content-type': 'a/b' });
    const sum = JSON.parse(text) as { messages: number; bytes: number; type: string };
    assert.deepEqual([code, sum.bytes, sum.type], [200, 100_001, 'a/b']);
    assert.ok(sum.messages >= 2 && sum.messages < 100, `${sum.messages} messages`);
  });

  it('are one empty message where there is none', async () => {
    for (const fields of [{ 'content-length': '0' }, { 'transfer-encoding': 'chunked' }] as const) {
      const { text } = await send('/raw.Raw/Upload', [], fields);
      assert.deepEqual(JSON.parse(text), { messages: 1 }, JSON.stringify(fields));
    }
  });

  it('go to the client as they come, as the type that the first says', async () => {
    const { status: code, type, text } = await send('/raw.Raw/Download', ['{"what":"one,two,three"}']);
    assert.deepEqual([code, type, text], [200, 'text/x-parts', 'onetwothree']);
  });

  it('are empty where the service says nothing, and tell how a call has ended that says nothing else', async () => {
    const none = await send('/raw.Raw/Download', ['{}']);
    assert.deepEqual([none.status, none.text, none.headers['grpc-status']], [200, '', '0']);
    const missing = await send('/raw.Raw/Download', ['{"what":"missing"}']);
    assert.deepEqual(
      [missing.status, missing.text, missing.headers['grpc-status'], missing.headers['grpc-message']],
      [404, '', '5', 'no%20such%20file'],
    );
  });

  it('are sent back while they are still being sent', async () => {
    const { type, text } = await send('/raw.Raw/Both', ['first', 'second', 'last'], {}, true);
    assert.deepEqual([type, text], ['text/x-echo', 'firstsecondlast']);
  });
});
