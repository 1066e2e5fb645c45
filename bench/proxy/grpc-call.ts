// The one call of gRPC that is measured: unary, a short message each way, with its status in trailers.

import http2 from 'node:http2';

export const GRPC_PATH = '/bench.Service/Unary';

/** Fields of a request beside those that every request has. */
export const GRPC_FIELDS = { 'content-type': 'application/grpc', te: 'trailers' } as const;

const TEXT = 'hello world\n';
const PREFIX_BYTES = 5;

/** As it goes over the wire, and comes back: not compressed, and its length. */
export const GRPC_MESSAGE = Buffer.concat([Buffer.alloc(PREFIX_BYTES), Buffer.from(TEXT)]);
GRPC_MESSAGE.writeUInt32BE(TEXT.length, 1);

/** The load generator does not look at trailers: one call by hand does. @throws Error unless all of the answer comes. */
export async function checkGrpcCall(port: number): Promise<void> {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  try {
    const answer = await new Promise<string>((resolve, reject) => {
      session.on('error', reject);
      const stream = session.request({ ':method': 'POST', ':path': GRPC_PATH, ...GRPC_FIELDS });
      const parts: Buffer[] = [];
      let status = 'no status';
      stream.on('error', reject);
      stream.on('trailers', (trailers) => {
        status = `status ${trailers['grpc-status']}`;
      });
      stream.on('data', (part: Buffer) => parts.push(part));
      stream.on('close', () => resolve(`${Buffer.concat(parts).toString('latin1')}${status}`));
      stream.end(GRPC_MESSAGE);
    });
    if (answer !== `${GRPC_MESSAGE.toString('latin1')}status 0`) throw new Error(`a call was answered with ${answer}`);
  } finally {
    session.destroy();
  }
}
