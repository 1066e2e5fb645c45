// A control plane: tells each proxy that asks (ADS, state of the world) the resources of a file, and anew whenever that changes.
//
//   node server.ts [file] [port]

import { readFileSync, watchFile } from 'node:fs';
import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import protobuf from 'protobufjs';

type Resource = { name: string; type_url: string; value: Uint8Array };
type Request = { type_url: string; resource_names: string[]; response_nonce: string; error_detail?: { message: string } };
type Stream = ServerDuplexStream<Request, object>;
/** The last request of a stream for a type, and the nonce of the last response. */
type Asked = { names: string[]; nonce: string };

const [file = `${import.meta.dirname}/resources.json`, port = '18000'] = process.argv.slice(2);

// Envoy's messages under names of weir's; the bytes are the same.
const bundle = readFileSync(`${import.meta.dirname}/../../build/proto/bundle.json`, 'utf8');
const root = protobuf.Root.fromJSON(JSON.parse(bundle));
const typeOf = (url: string) => root.lookupType(url.replace(/^.*\/envoy\./, 'proxy.'));
const requestType = typeOf('/envoy.service.discovery.v3.DiscoveryRequest');
const responseType = typeOf('/envoy.service.discovery.v3.DiscoveryResponse');

/** What has a `@type`, at any depth, becomes an Any; JSON.parse comes to inner ones first. */
function pack(_key: string, value: any): any {
  if (typeof value?.['@type'] !== 'string') return value;
  const { '@type': type_url, ...fields } = value;
  const type = typeOf(type_url);
  return { type_url, value: type.encode(type.fromObject(fields)).finish(), name: fields.name ?? fields.cluster_name };
}

const read = (): Resource[] => [...JSON.parse(readFileSync(file, 'utf8'), pack)];

let resources = read();
let version = 1;
const streams = new Map<Stream, Map<string, Asked>>(); // by type

function tell(stream: Stream, type_url: string): void {
  const asked = streams.get(stream)!.get(type_url)!;
  const isWanted = ({ name }: Resource) => asked.names.length === 0 || asked.names.includes(name);
  const told = resources.filter((resource) => resource.type_url === type_url && isWanted(resource));
  asked.nonce = String(Number(asked.nonce) + 1);
  stream.write({ version_info: String(version), nonce: asked.nonce, type_url, resources: told });
}

function open(stream: Stream): void {
  const types = new Map<string, Asked>();
  streams.set(stream, types);
  stream.on('data', ({ type_url, resource_names: names, response_nonce: nonce, error_detail }: Request) => {
    const asked = types.get(type_url);
    if (nonce !== (asked?.nonce ?? '')) return; // of a response that another has followed
    if (asked !== undefined) console.log(`${type_url} ${error_detail ? `refused: ${error_detail.message}` : 'taken over'}`);
    types.set(type_url, { names, nonce });
    if (names.some((name) => !asked?.names.includes(name)) || asked === undefined) tell(stream, type_url);
  });
  stream.on('end', () => stream.end());
  for (const end of ['end', 'cancelled', 'error']) stream.on(end, () => streams.delete(stream));
}

watchFile(file, { interval: 200 }, () => {
  try {
    resources = read();
    version += 1;
    for (const [stream, types] of streams) for (const type_url of types.keys()) tell(stream, type_url);
  } catch (error) {
    console.error(`${file}: ${error}`); // what was there before goes on
  }
});

const method = {
  path: '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
  requestStream: true,
  responseStream: true,
  requestSerialize: Buffer.from, // by clients
  requestDeserialize: (bytes: Buffer) => requestType.decode(bytes),
  responseSerialize: (response: object) => Buffer.from(responseType.encode(responseType.fromObject(response)).finish()),
  responseDeserialize: (bytes: Buffer) => bytes, // by clients
};
const server = new Server();
server.addService({ stream: method as never }, { stream: open as never });
server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, bound) => {
  if (error !== null) throw error;
  console.log(`control plane at 127.0.0.1:${bound}`);
});
