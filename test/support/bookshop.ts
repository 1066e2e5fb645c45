// The service of examples/bookshop.proto, by `@grpc/grpc-js`.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import protobuf from 'protobufjs/light.js';
import 'protobufjs/ext/descriptor.js';

export const BOOKSHOP = path.join(import.meta.dirname, '../../examples/bookshop.pb');

type Fields = Record<string, unknown>;

const root = (protobuf.Root as unknown as { fromDescriptor(bytes: Uint8Array): protobuf.Root })
  .fromDescriptor(readFileSync(BOOKSHOP))
  .resolveAll() as protobuf.Root;

export function messageType(name: string): protobuf.Type {
  return root.lookupType(name);
}

function method(name: string, request: string, response: string, isRequestStream = false, isResponseStream = false) {
  const [asked, answered] = [messageType(request), messageType(response)];
  return {
    path: `/bookshop.Shop/${name}`,
    requestStream: isRequestStream,
    responseStream: isResponseStream,
    requestSerialize: (fields: Fields) => Buffer.from(asked.encode(asked.fromObject(fields)).finish()),
    requestDeserialize: (bytes: Buffer) => asked.toObject(asked.decode(bytes), { longs: Number }) as Fields,
    responseSerialize: (fields: Fields) => Buffer.from(answered.encode(answered.fromObject(fields)).finish()),
    responseDeserialize: (bytes: Buffer) => answered.toObject(answered.decode(bytes), { longs: Number }) as Fields,
  };
}

export const SHOP = {
  GetBook: method('GetBook', 'bookshop.GetBookRequest', 'bookshop.Book'),
  CreateBook: method('CreateBook', 'bookshop.CreateBookRequest', 'bookshop.Book'),
  FindBooks: method('FindBooks', 'bookshop.FindBooksRequest', 'bookshop.Book', false, true),
  AddBooks: method('AddBooks', 'bookshop.Book', 'bookshop.Summary', true),
  GetCover: method('GetCover', 'bookshop.GetCoverRequest', 'google.api.HttpBody'),
  CountBooks: method('CountBooks', 'bookshop.CountBooksRequest', 'bookshop.Summary'),
};

const BOOKS = ['Emma', 'Persuasion', 'Sanditon'];

export interface Bookshop extends AsyncDisposable {
  readonly port: number;
  /** Requests as they came, by method. */
  readonly asked: (readonly [method: string, request: Fields])[];
}

export async function openBookshop(): Promise<Bookshop> {
  const asked: (readonly [string, Fields])[] = [];
  const server = new Server();
  const unary =
    (name: string, answer: (request: Fields) => Fields) =>
    ({ request }: ServerUnaryCall<Fields, Fields>, done: sendUnaryData<Fields>): void => {
      asked.push([name, request]);
      try {
        done(null, answer(request));
      } catch (error) {
        const metadata = new Metadata();
        const type = messageType('google.rpc.Status');
        const details = type.encode(type.fromObject({ code: status.NOT_FOUND, message: 'no such book' })).finish();
        if (String(error).includes('details')) metadata.set('grpc-status-details-bin', Buffer.from(details));
        done({ code: status.NOT_FOUND, details: 'nö such book', metadata });
      }
    };
  server.addService(
    SHOP as never,
    {
      GetBook: unary('GetBook', ({ book = 0, shelf = 0 }) => {
        if (book === 404) throw new Error('none');
        if (book === 405) throw new Error('none, with details');
        return { id: book, title: `book ${String(book)} of ${String(shelf)}`, genre: 1, isLent: false };
      }),
      CreateBook: unary('CreateBook', ({ book }) => ({ ...(book as Fields), id: 9 })),
      GetCover: unary('GetCover', ({ path: place }) => ({
        contentType: 'image/x-test',
        data: Buffer.from(String(place)),
      })),
      CountBooks: unary('CountBooks', () => ({ count: BOOKS.length })),
      FindBooks(call: ServerWritableStream<Fields, Fields>): void {
        asked.push(['FindBooks', call.request]);
        const part = String(call.request.titlePart ?? '').toLowerCase();
        for (const title of BOOKS) if (title.toLowerCase().includes(part)) call.write({ title });
        call.end();
      },
      AddBooks(call: ServerReadableStream<Fields, Fields>, done: sendUnaryData<Fields>): void {
        let count = 0;
        call.on('data', (book: Fields) => {
          asked.push(['AddBooks', book]);
          count += 1;
        });
        call.on('end', () => done(null, { count }));
      },
    } as never,
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    port,
    asked,
    async [Symbol.asyncDispose]() {
      server.forceShutdown();
    },
  };
}
