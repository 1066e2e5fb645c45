// Receivers of metrics in a thread of their own: a socket for datagrams and an OTLP collector, which look at nothing.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { parentPort } from 'node:worker_threads';
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';

const asItIs = (bytes: Buffer): Buffer => bytes;

const udp = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 });
udp.on('message', () => {});
udp.bind(0, '127.0.0.1');
await once(udp, 'listening');

const server = new Server();
server.addService(
  {
    Export: {
      path: '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export',
      requestStream: false,
      responseStream: false,
      requestSerialize: asItIs,
      requestDeserialize: asItIs,
      responseSerialize: asItIs,
      responseDeserialize: asItIs,
    },
  },
  { Export: (_: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => answer(null, Buffer.alloc(0)) },
);
const otlp = await new Promise<number>((resolve, reject) => {
  server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
    error ? reject(error) : resolve(port),
  );
});

parentPort!.postMessage({ udp: udp.address().port, otlp });
