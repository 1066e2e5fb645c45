// Each command operator with the value that it has for one request about which everything is known: in a line of a log, and in
// a header.

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { hostname } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { parseFormat } from '../../../../src/config/resources/format/format-string.ts';
import {
  ABSENT_OPERATORS,
  METADATA_OPERATORS,
  METADATA_SOURCES,
  OPERATORS,
  SETTLED_OPERATORS,
} from '../../../../src/config/resources/format/operators.ts';
import type { UpstreamFacts } from '../../../../src/data-plane/format/facts.ts';
import { JsonFormatter } from '../../../../src/data-plane/format/json-formatter.ts';
import { StreamFacts } from '../../../../src/data-plane/format/stream-facts.ts';
import { TextFormatter } from '../../../../src/data-plane/format/text-formatter.ts';
import { WireBytes } from '../../../../src/data-plane/format/wire-bytes.ts';
import { directResponse } from '../../../../src/data-plane/http/local-reply.ts';
import { ReplyHead } from '../../../../src/data-plane/http/reply-head.ts';
import { certificateFacts, type TlsFacts } from '../../../../src/data-plane/network/tls/connection-tls.ts';
import { ResponseFlag } from '../../../../src/data-plane/response-flags.ts';
import { compileHeaderEdits } from '../../../../src/data-plane/route/header-editor.ts';
import { CertificateFolder } from '../../../support/certificates.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const REQUEST =
  'GET /a?x=1&to=%2f%C3%A9% HTTP/1.1\r\nhost: web:80\r\nx-request-id: r-1\r\nx-forwarded-proto: https\r\nx-envoy-original-path: /was?x=2\r\n\r\n';
const RESPONSE = 'HTTP/1.1 503 No\r\nx-up: 1\r\n\r\n';
const TRAILERS = 'x-end: 1\r\n';

/** Format and value. What certificates say is asked of openssl's own reading of them. */
type Case = readonly [format: string, expected: string | RegExp | ((known: Known) => string)];

interface Known {
  readonly client: X509Certificate;
  readonly shown: X509Certificate;
  readonly host: X509Certificate;
}

const isoOf = (date: Date): string => date.toISOString();
const pemOf = (certificate: X509Certificate): string => encodeURIComponent(certificate.toString());
const digitsOf = (hex: string): string => hex.replaceAll(':', '').toLowerCase();

const latin1 = (text: string): string => Buffer.from(text).toString('latin1');

const CASES: Readonly<Record<string, readonly Case[]>> = {
  ACCESS_LOG_TYPE: [['%ACCESS_LOG_TYPE%', 'DownstreamEnd']],
  BYTES_RECEIVED: [['%BYTES_RECEIVED%', '12']],
  BYTES_SENT: [['%BYTES_SENT%', '345']],
  BYTES_RETRANSMITTED: [['%BYTES_RETRANSMITTED%', '0']],
  COMMON_DURATION: [
    ['%COMMON_DURATION(DS_CX_BEG:DS_HS_END:us)%', '30250'],
    ['%COMMON_DURATION(DS_RX_BEG:DS_RX_END:ms)%', '1'],
    ['%COMMON_DURATION(DS_RX_BEG:US_TX_BEG:us)%', '1937'],
    ['%COMMON_DURATION(US_CX_BEG:US_CX_END:ns)%', '1000000'],
    ['%COMMON_DURATION(US_CX_END:US_HS_END:us)%', '500'],
    ['%COMMON_DURATION(US_TX_BEG:US_TX_END:us)%', '62'],
    ['%COMMON_DURATION(US_RX_BEG:US_RX_BODY_BEG:us)%', '500'],
    ['%COMMON_DURATION(US_RX_BEG:US_RX_END:ms)%', '2'],
    ['%COMMON_DURATION(DS_TX_BEG:DS_TX_END:us)%', '5375'],
    // What came first has no time behind it.
    ['%COMMON_DURATION(DS_RX_END:DS_RX_BEG:ms)%', '-'],
  ],
  DOWNSTREAM_HANDSHAKE_DURATION: [['%DOWNSTREAM_HANDSHAKE_DURATION%', '30']],
  PACKETS_RETRANSMITTED: [['%PACKETS_RETRANSMITTED%', '0']],
  UNIQUE_ID: [['%UNIQUE_ID%', /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/]],
  UPSTREAM_PEER_CERT_V_END: [['%UPSTREAM_PEER_CERT_V_END%', ({ host }) => isoOf(host.validToDate)]],
  UPSTREAM_PEER_CERT_V_START: [['%UPSTREAM_PEER_CERT_V_START%', ({ host }) => isoOf(host.validFromDate)]],
  DOWNSTREAM_WIRE_BYTES_SENT: [['%DOWNSTREAM_WIRE_BYTES_SENT%', '1']],
  DOWNSTREAM_WIRE_BYTES_RECEIVED: [['%DOWNSTREAM_WIRE_BYTES_RECEIVED%', '2']],
  DOWNSTREAM_HEADER_BYTES_SENT: [['%DOWNSTREAM_HEADER_BYTES_SENT%', '3']],
  DOWNSTREAM_HEADER_BYTES_RECEIVED: [['%DOWNSTREAM_HEADER_BYTES_RECEIVED%', '4']],
  DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT: [['%DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT%', '5']],
  DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED: [['%DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED%', '6']],
  UPSTREAM_WIRE_BYTES_SENT: [['%UPSTREAM_WIRE_BYTES_SENT%', '10']],
  UPSTREAM_WIRE_BYTES_RECEIVED: [['%UPSTREAM_WIRE_BYTES_RECEIVED%', '20']],
  UPSTREAM_HEADER_BYTES_SENT: [['%UPSTREAM_HEADER_BYTES_SENT%', '30']],
  UPSTREAM_HEADER_BYTES_RECEIVED: [['%UPSTREAM_HEADER_BYTES_RECEIVED%', '40']],
  UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT: [['%UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT%', '50']],
  UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED: [['%UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED%', '60']],
  CONNECTION_ID: [['%CONNECTION_ID%', '7']],
  CONNECTION_TERMINATION_DETAILS: [['%CONNECTION_TERMINATION_DETAILS%', 'rbac_denied']],
  DOWNSTREAM_DIRECT_LOCAL_ADDRESS: [['%DOWNSTREAM_DIRECT_LOCAL_ADDRESS%', '10.0.0.2:8443']],
  DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT: [['%DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT%', '10.0.0.2']],
  DOWNSTREAM_DIRECT_LOCAL_PORT: [['%DOWNSTREAM_DIRECT_LOCAL_PORT%', '8443']],
  DOWNSTREAM_DIRECT_REMOTE_ADDRESS: [['%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%', '[::1]:9']],
  DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT: [['%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%', '::1']],
  DOWNSTREAM_DIRECT_REMOTE_PORT: [['%DOWNSTREAM_DIRECT_REMOTE_PORT%', '9']],
  DOWNSTREAM_LOCAL_ADDRESS: [['%DOWNSTREAM_LOCAL_ADDRESS%', '10.0.0.1:443']],
  DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT: [['%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%', '10.0.0.1']],
  DOWNSTREAM_LOCAL_PORT: [['%DOWNSTREAM_LOCAL_PORT%', '443']],
  DOWNSTREAM_REMOTE_ADDRESS: [['%DOWNSTREAM_REMOTE_ADDRESS%', '192.0.2.7:4567']],
  DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: [['%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%', '192.0.2.7']],
  DOWNSTREAM_REMOTE_PORT: [['%DOWNSTREAM_REMOTE_PORT%', '4567']],
  DOWNSTREAM_LOCAL_DNS_SAN: [['%DOWNSTREAM_LOCAL_DNS_SAN%', 'shown.test,also.test']],
  DOWNSTREAM_LOCAL_EMAIL_SAN: [['%DOWNSTREAM_LOCAL_EMAIL_SAN%', 'shown@test']],
  DOWNSTREAM_LOCAL_IP_SAN: [['%DOWNSTREAM_LOCAL_IP_SAN%', '10.0.0.1']],
  DOWNSTREAM_LOCAL_SUBJECT: [['%DOWNSTREAM_LOCAL_SUBJECT%', 'CN=shown']],
  DOWNSTREAM_LOCAL_URI_SAN: [['%DOWNSTREAM_LOCAL_URI_SAN%', 'spiffe://test/shown']],
  DOWNSTREAM_PEER_CERT: [['%DOWNSTREAM_PEER_CERT%', ({ client }) => pemOf(client)]],
  DOWNSTREAM_PEER_CERT_V_END: [
    ['%DOWNSTREAM_PEER_CERT_V_END%', ({ client }) => isoOf(client.validToDate)],
    ['%DOWNSTREAM_PEER_CERT_V_END(%s)%', ({ client }) => String(client.validToDate.getTime() / 1000)],
  ],
  DOWNSTREAM_PEER_CERT_V_START: [
    ['%DOWNSTREAM_PEER_CERT_V_START%', ({ client }) => isoOf(client.validFromDate)],
    ['%DOWNSTREAM_PEER_CERT_V_START(%Y)%', ({ client }) => String(client.validFromDate.getUTCFullYear())],
  ],
  DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1: [
    ['%DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1%', ({ client }) => digitsOf(client.fingerprint)],
  ],
  DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256: [
    ['%DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256%', ({ client }) => digitsOf(client.fingerprint256)],
  ],
  DOWNSTREAM_PEER_CHAIN_SERIALS: [
    ['%DOWNSTREAM_PEER_CHAIN_SERIALS%', ({ client }) => client.serialNumber.toLowerCase()],
  ],
  DOWNSTREAM_PEER_DNS_SAN: [['%DOWNSTREAM_PEER_DNS_SAN%', 'client.test']],
  DOWNSTREAM_PEER_EMAIL_SAN: [['%DOWNSTREAM_PEER_EMAIL_SAN%', 'client@test,too@test']],
  DOWNSTREAM_PEER_FINGERPRINT_1: [['%DOWNSTREAM_PEER_FINGERPRINT_1%', ({ client }) => digitsOf(client.fingerprint)]],
  DOWNSTREAM_PEER_FINGERPRINT_256: [
    ['%DOWNSTREAM_PEER_FINGERPRINT_256%', ({ client }) => digitsOf(client.fingerprint256)],
  ],
  DOWNSTREAM_PEER_IP_SAN: [['%DOWNSTREAM_PEER_IP_SAN%', '10.1.2.3']],
  DOWNSTREAM_PEER_ISSUER: [['%DOWNSTREAM_PEER_ISSUER%', 'CN=authority']],
  DOWNSTREAM_PEER_SERIAL: [['%DOWNSTREAM_PEER_SERIAL%', ({ client }) => client.serialNumber.toLowerCase()]],
  DOWNSTREAM_PEER_SUBJECT: [['%DOWNSTREAM_PEER_SUBJECT%', 'CN=client']],
  DOWNSTREAM_PEER_URI_SAN: [['%DOWNSTREAM_PEER_URI_SAN%', 'spiffe://test/client,spiffe://test/too']],
  DOWNSTREAM_TLS_CIPHER: [['%DOWNSTREAM_TLS_CIPHER%', 'TLS_AES_256_GCM_SHA384']],
  DOWNSTREAM_TLS_SESSION_ID: [['%DOWNSTREAM_TLS_SESSION_ID%', 'ab01']],
  DOWNSTREAM_TLS_VERSION: [['%DOWNSTREAM_TLS_VERSION%', 'TLSv1.3']],
  DOWNSTREAM_TRANSPORT_FAILURE_REASON: [['%DOWNSTREAM_TRANSPORT_FAILURE_REASON%', 'no shared cipher']],
  DURATION: [['%DURATION%', '15']],
  EMIT_TIME: [
    ['%EMIT_TIME%', '2026-01-01T00:00:01.000Z'],
    ['%EMIT_TIME(%H:%M:%S)%', '00:00:01'],
  ],
  EMIT_TIME_LOCAL: [['%EMIT_TIME_LOCAL(%s)%', '1767225601']],
  FILTER_CHAIN_NAME: [['%FILTER_CHAIN_NAME%', 'chain']],
  GRPC_STATUS: [
    ['%GRPC_STATUS%', 'PermissionDenied'],
    ['%GRPC_STATUS(SNAKE_STRING)%', 'PERMISSION_DENIED'],
    ['%GRPC_STATUS(NUMBER)%', '7'],
  ],
  FILTER_STATE: [
    ['%FILTER_STATE(said:PLAIN)%', latin1('of "it" é')],
    ['%FILTER_STATE(said)%', latin1('"of \\"it\\" é"')],
    ['%FILTER_STATE(said:TYPED):3%', '"of'],
    ['%FILTER_STATE(nothing)%', '-'],
  ],
  GRPC_STATUS_NUMBER: [['%GRPC_STATUS_NUMBER%', '7']],
  LOCAL_REPLY_BODY: [['%LOCAL_REPLY_BODY%', 'no healthy upstream']],
  METADATA: METADATA_SOURCES.map((source) => [`%METADATA(${source}:test:of)%`, source]),
  PROTOCOL: [['%PROTOCOL%', 'HTTP/2']],
  PATH: [
    ['%PATH%', '/was?x=2'],
    ['%PATH(NQ)%', '/was'],
    ['%PATH(NQ:PATH)%', '/a'],
    ['%PATH(WQ:PATH):6%', '/a?x=1'],
    ['%PATH(:ORIG)%', '/was?x=2'],
  ],
  QUERY_PARAM: [
    ['%QUERY_PARAM(x)%', '1'],
    ['%QUERY_PARAM(y)%', '-'],
  ],
  QUERY_PARAMS: [
    ['%QUERY_PARAMS%', 'x=1&to=%2f%C3%A9%'],
    ['%QUERY_PARAMS(ORIG):3%', 'x=1'],
    ['%QUERY_PARAMS(DECODED)%', latin1('x=1&to=/é%')],
  ],
  REQ: [
    ['%REQ(:METHOD)% %REQ(:PATH)% %REQ(:AUTHORITY)% %REQ(:SCHEME)%', 'GET /a?x=1&to=%2f%C3%A9% web:80 https'],
    ['%REQ(X-Request-Id)%', 'r-1'],
    ['%REQ(x-none?host)%', 'web:80'],
    ['%REQ(x-none)%', '-'],
    ['%REQ(:PATH):2%', '/a'],
  ],
  REQ_WITHOUT_QUERY: [
    ['%REQ_WITHOUT_QUERY(:PATH)%', '/a'],
    ['%REQ_WITHOUT_QUERY(x-none?x-envoy-original-path)%', '/was'],
    ['%REQ_WITHOUT_QUERY(x-request-id)%', 'r-1'],
    ['%REQ_WITHOUT_QUERY(x-none)%', '-'],
    ['%REQ_WITHOUT_QUERY(:PATH):1%', '/'],
  ],
  REQUEST_DURATION: [['%REQUEST_DURATION%', '1']],
  REQUEST_HEADERS_BYTES: [['%REQUEST_HEADERS_BYTES%', String(REQUEST.length)]],
  REQUEST_TX_DURATION: [['%REQUEST_TX_DURATION%', '2']],
  REQUESTED_SERVER_NAME: [
    ['%REQUESTED_SERVER_NAME%', 'web.test'],
    ['%REQUESTED_SERVER_NAME(SNI_ONLY)%', 'web.test'],
    ['%REQUESTED_SERVER_NAME(SNI_FIRST:ORIG)%', 'web.test'],
    ['%REQUESTED_SERVER_NAME(HOST_FIRST)%', 'web:80'],
    ['%REQUESTED_SERVER_NAME(HOST_FIRST:HOST)%', 'web:80'],
    ['%REQUESTED_SERVER_NAME(HOST_FIRST:ORIG)%', '-'],
  ],
  RESP: [
    ['%RESP(x-up)% %RESP(:STATUS)%', '1 503'],
    ['%RESP(x-none?x-up)%', '1'],
    ['%RESP(x-none)%', '-'],
  ],
  RESPONSE_CODE: [['%RESPONSE_CODE%', '503']],
  RESPONSE_CODE_DETAILS: [['%RESPONSE_CODE_DETAILS%', 'no_healthy_upstream']],
  RESPONSE_DURATION: [['%RESPONSE_DURATION%', '10']],
  RESPONSE_FLAGS: [['%RESPONSE_FLAGS%', 'UH,UF']],
  RESPONSE_FLAGS_LONG: [['%RESPONSE_FLAGS_LONG%', 'NoHealthyUpstream,UpstreamConnectionFailure']],
  RESPONSE_HEADERS_BYTES: [['%RESPONSE_HEADERS_BYTES%', String(RESPONSE.length)]],
  RESPONSE_TRAILERS_BYTES: [['%RESPONSE_TRAILERS_BYTES%', String(TRAILERS.length)]],
  RESPONSE_TX_DURATION: [['%RESPONSE_TX_DURATION%', '5']],
  ROUTE_NAME: [['%ROUTE_NAME%', 'route']],
  SPAN_ID: [['%SPAN_ID%', 'b7ad6b7169203331']],
  START_TIME: [
    ['%START_TIME%', '2026-01-01T00:00:01.000Z'],
    ['%START_TIME(%Y/%m/%d %3f)%', '2026/01/01 000'],
  ],
  START_TIME_LOCAL: [['%START_TIME_LOCAL(%s)%', '1767225601']],
  STREAM_ID: [['%STREAM_ID%', 'r-1']],
  TLS_JA3_FINGERPRINT: [['%TLS_JA3_FINGERPRINT%', 'da4dea34fe6d4ce5f0725df3f2682fa0']],
  TLS_JA4_FINGERPRINT: [['%TLS_JA4_FINGERPRINT%', 't13d030900_55b375c5d22e_59cd3dafc54d']],
  TRACE_ID: [['%TRACE_ID%', '0af7651916cd43dd8448eb211c80319c']],
  TRAILER: [
    ['%TRAILER(X-End)%', '1'],
    ['%TRAILER(x-none?x-end)%', '1'],
    ['%TRAILER(x-none)%', '-'],
  ],
  UPSTREAM_CLUSTER: [['%UPSTREAM_CLUSTER%', 'web']],
  UPSTREAM_CLUSTER_RAW: [['%UPSTREAM_CLUSTER_RAW%', 'web']],
  UPSTREAM_CONNECTION_ID: [['%UPSTREAM_CONNECTION_ID%', '19']],
  UPSTREAM_CONNECTION_POOL_READY_DURATION: [['%UPSTREAM_CONNECTION_POOL_READY_DURATION%', '3']],
  UPSTREAM_HOST: [['%UPSTREAM_HOST%', '[fd00::1]:8080']],
  UPSTREAM_HOST_NAME: [['%UPSTREAM_HOST_NAME%', 'up.test:8080']],
  UPSTREAM_HOST_NAME_WITHOUT_PORT: [['%UPSTREAM_HOST_NAME_WITHOUT_PORT%', 'up.test']],
  UPSTREAM_CONNECTION_IDS_ATTEMPTED: [['%UPSTREAM_CONNECTION_IDS_ATTEMPTED%', '18,19']],
  UPSTREAM_HOST_NAMES_ATTEMPTED: [['%UPSTREAM_HOST_NAMES_ATTEMPTED%', '192.0.2.1:80,10.0.0.8:81,up.test:8080']],
  UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT: [
    ['%UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT%', '192.0.2.1,10.0.0.8,up.test'],
  ],
  UPSTREAM_HOSTS_ATTEMPTED: [['%UPSTREAM_HOSTS_ATTEMPTED%', '192.0.2.1:80,10.0.0.8:81,[fd00::1]:8080']],
  UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT: [['%UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT%', '192.0.2.1,10.0.0.8,fd00::1']],
  UPSTREAM_LOCAL_ADDRESS: [['%UPSTREAM_LOCAL_ADDRESS%', '127.0.0.1:555']],
  UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT: [['%UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%', '127.0.0.1']],
  UPSTREAM_LOCAL_PORT: [['%UPSTREAM_LOCAL_PORT%', '555']],
  UPSTREAM_PEER_CERT: [['%UPSTREAM_PEER_CERT%', ({ host }) => pemOf(host)]],
  UPSTREAM_PEER_DNS_SAN: [['%UPSTREAM_PEER_DNS_SAN%', 'host.test']],
  UPSTREAM_PEER_EMAIL_SAN: [['%UPSTREAM_PEER_EMAIL_SAN%', 'host@test']],
  UPSTREAM_PEER_IP_SAN: [['%UPSTREAM_PEER_IP_SAN%', '10.0.0.9']],
  UPSTREAM_PEER_ISSUER: [['%UPSTREAM_PEER_ISSUER%', 'CN=authority']],
  UPSTREAM_PEER_SUBJECT: [['%UPSTREAM_PEER_SUBJECT%', 'CN=host']],
  UPSTREAM_PEER_URI_SAN: [['%UPSTREAM_PEER_URI_SAN%', 'spiffe://test/host']],
  UPSTREAM_PROTOCOL: [['%UPSTREAM_PROTOCOL%', 'HTTP/1.1']],
  UPSTREAM_REMOTE_ADDRESS: [['%UPSTREAM_REMOTE_ADDRESS%', '[fd00::1]:8080']],
  UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: [['%UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%', 'fd00::1']],
  UPSTREAM_REMOTE_PORT: [['%UPSTREAM_REMOTE_PORT%', '8080']],
  UPSTREAM_REQUEST_ATTEMPT_COUNT: [['%UPSTREAM_REQUEST_ATTEMPT_COUNT%', '2']],
  UPSTREAM_TLS_CIPHER: [['%UPSTREAM_TLS_CIPHER%', 'ECDHE-ECDSA-AES128-GCM-SHA256']],
  UPSTREAM_TLS_SESSION_ID: [['%UPSTREAM_TLS_SESSION_ID%', 'cd02']],
  UPSTREAM_TLS_VERSION: [['%UPSTREAM_TLS_VERSION%', 'TLSv1.2']],
  UPSTREAM_TRANSPORT_FAILURE_REASON: [['%UPSTREAM_TRANSPORT_FAILURE_REASON%', 'certificate has expired']],
  VIRTUAL_CLUSTER_NAME: [['%VIRTUAL_CLUSTER_NAME%', 'virtual']],
  VIRTUAL_HOST_NAME: [['%VIRTUAL_HOST_NAME%', 'hosts']],
  CLUSTER_METADATA: [['%CLUSTER_METADATA(test:of)%', 'CLUSTER']],
  DYNAMIC_METADATA: [['%DYNAMIC_METADATA(test:of)%', 'DYNAMIC']],
  UPSTREAM_METADATA: [
    ['%UPSTREAM_METADATA(test:of)%', 'UPSTREAM_HOST'],
    ['%UPSTREAM_METADATA(["test", "of"])%', 'UPSTREAM_HOST'],
  ],
  ENVIRONMENT: [
    ['%ENVIRONMENT(REGION)%', 'eu'],
    ['%ENVIRONMENT(NOTHING)%', '-'],
  ],
  HOSTNAME: [['%HOSTNAME%', hostname()]],
};

let folder: CertificateFolder;
let known: Known;
let facts: StreamFacts;

before(async () => {
  folder = new CertificateFolder();
  const authority = await folder.make('authority', { isAuthority: true });
  const of = async (name: string, altNames: string): Promise<X509Certificate> =>
    new X509Certificate((await folder.make(name, { issuer: authority, altNames })).certificate);
  known = {
    client: await of(
      'client',
      'DNS:client.test,URI:spiffe://test/client,URI:spiffe://test/too,email:client@test,email:too@test,IP:10.1.2.3',
    ),
    shown: await of('shown', 'DNS:shown.test,DNS:also.test,URI:spiffe://test/shown,email:shown@test,IP:10.0.0.1'),
    host: await of('host', 'DNS:host.test,URI:spiffe://test/host,email:host@test,IP:10.0.0.9'),
  };
  facts = everythingOf(known);
});

after(() => folder[Symbol.dispose]());

function everythingOf({ client, shown, host }: Known): StreamFacts {
  const clock = new ManualClock();
  const of = (source: string) => ({ test: { of: source } });
  const tls = (facts: Partial<TlsFacts>): TlsFacts => facts as TlsFacts;
  const downstream = {
    connectionId: 7,
    startMs: clock.monotonicMs() - 40.5,
    securedMs: clock.monotonicMs() - 10.25,
    remote: { ip: '10.1.2.3', port: 1 },
    directRemote: { ip: '::1', port: 9 },
    local: { ip: '10.0.0.1', port: 443 },
    directLocal: { ip: '10.0.0.2', port: 8443 },
    originalDestination: null,
    requestedServerName: 'web.test',
    transportProtocol: 'tls' as const,
    applicationProtocols: [],
    fingerprints: { ja3: 'da4dea34fe6d4ce5f0725df3f2682fa0', ja4: 't13d030900_55b375c5d22e_59cd3dafc54d' },
    tls: tls({
      version: 'TLSv1.3',
      cipher: 'TLS_AES_256_GCM_SHA384',
      sessionId: 'ab01',
      peer: certificateFacts(client),
      own: certificateFacts(shown),
    }),
    metadata: undefined,
    state: (key: string) => (key === 'said' ? 'of "it" é' : undefined),
    transportFailure: 'no shared cipher',
  };
  const ingress = { chainName: 'chain', chainMetadata: of('LISTENER_FILTER_CHAIN'), listenerMetadata: of('LISTENER') };
  const trailers = { get: (name: string) => (name === 'x-end' ? '1' : undefined), text: () => TRAILERS };
  const upstream: UpstreamFacts = {
    remote: { ip: 'fd00::1', port: 8080 },
    hostname: 'up.test:8080',
    local: { ip: '127.0.0.1', port: 555 },
    protocol: 'HTTP/1.1',
    metadata: of('UPSTREAM_HOST'),
    connectionId: 19,
    openedMs: 1000.25,
    connectedMs: 1001.25,
    securedMs: 1001.75,
    tls: tls({
      version: 'TLSv1.2',
      cipher: 'ECDHE-ECDSA-AES128-GCM-SHA256',
      sessionId: 'cd02',
      peer: certificateFacts(host),
    }),
  };
  const made = new StreamFacts(clock, clock.monotonicMs(), downstream, 'DownstreamEnd', ingress);
  // The first had a connection, the second had not.
  const before = { ...upstream, hostname: '' };
  made.noteHostChosen({ ...before, remote: { ip: '192.0.2.1', port: 80 }, connectionId: 18 });
  made.noteHostChosen({ ...before, remote: { ip: '10.0.0.8', port: 81 }, connectionId: 0 });
  made.noteHostChosen(upstream);
  return Object.assign(made, {
    clientByHops: { ip: '192.0.2.7', port: 4567 },
    protocol: 'HTTP/2',
    isGrpc: true,
    grpcTrailer: '7',
    status: 503,
    details: 'no_healthy_upstream',
    connectionTerminationDetails: 'rbac_denied',
    flags: ResponseFlag.UH | ResponseFlag.UF,
    localReplyBody: 'no healthy upstream',
    bytesReceived: 12,
    bytesSent: 345,
    requestEndMs: 1001.9,
    requestSentMs: 1002,
    responseStartMs: 1010,
    poolReadyDurationMs: 3,
    upstreamStartMs: 1001.9375,
    bodyStartMs: 1010.5,
    responseEndMs: 1012,
    answerStartMs: 1010.125,
    answerEndMs: 1015.5,
    downstreamWire: wire(1),
    upstreamWire: wire(10),
    endMs: 1015.5,
    routeName: 'route',
    virtualHostName: 'hosts',
    virtualClusterName: 'virtual',
    upstreamCluster: 'web',
    attempts: 2,
    tracePlace: { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' },
    upstreamTransportFailure: 'certificate has expired',
    requestHead: REQUEST,
    responseHead: RESPONSE,
    responseTrailers: trailers,
    clusterMetadata: of('CLUSTER'),
    dynamicMetadata: of('DYNAMIC'),
    routeMetadata: of('ROUTE'),
    virtualHostMetadata: of('VIRTUAL_HOST'),
  });
}

/** Counts that differ by a factor. */
function wire(factor: number): WireBytes {
  const counts = { sent: 1, received: 2, headSent: 3, headReceived: 4, headTextSent: 5, headTextReceived: 6 };
  const entries = Object.entries(counts).map(([name, count]) => [name, count * factor]);
  return Object.assign(new WireBytes(), Object.fromEntries(entries));
}

function segmentsOf(format: string) {
  const { segments, error } = parseFormat(format, { REGION: 'eu' });
  assert.equal(error, undefined);
  return segments!;
}

function headerOf(format: string): string {
  const head = new ReplyHead(directResponse(204, new Uint8Array(), null));
  const add = [{ name: 'x-v', value: segmentsOf(format), action: 'append', keepsEmptyValue: false }] as const;
  compileHeaderEdits([{ remove: [], add }])?.apply(head, { facts });
  return head.headerByName('x-v') ?? '';
}

describe('the operator', () => {
  const names = [...Object.keys({ ...OPERATORS, ...SETTLED_OPERATORS }), ...METADATA_OPERATORS.keys()];

  for (const name of names) {
    test(name, () => {
      const cases = CASES[name];
      assert.ok(cases?.length, 'has a case');
      for (const [format, expectation] of cases) {
        if (expectation instanceof RegExp) {
          assert.match(new TextFormatter(segmentsOf(format), { missing: '-' }).render(facts), expectation);
          assert.match(headerOf(format), expectation);
          continue;
        }
        const expected = typeof expectation === 'string' ? expectation : expectation(known);
        assert.equal(new TextFormatter(segmentsOf(format), { missing: '-' }).render(facts), expected, format);
        // What is settled with the configuration is text by then.
        const isMissing = expected === '-' && !Object.hasOwn(SETTLED_OPERATORS, name);
        assert.equal(headerOf(format), isMissing ? '' : expected, format);
      }
    });
  }

  for (const name of ABSENT_OPERATORS) {
    test(`${name}, which is always missing`, () => {
      assert.equal(new TextFormatter(segmentsOf(`%${name}(any)%`), { missing: '-' }).render(facts), '-');
      assert.equal(headerOf(`%${name}%`), '');
    });
  }

  test('has its case under its name, and no name has a case but has no operator', () => {
    assert.deepEqual(Object.keys(CASES).toSorted(), names.toSorted());
    for (const [name, cases] of Object.entries(CASES)) {
      assert.ok(
        cases.every(([format]) => format.startsWith(`%${name}`)),
        name,
      );
    }
  });
});

test('numbers are numbers in typed JSON, and everything else is text', () => {
  const formats = Object.values(CASES).map((cases) => cases[0]![0]);
  const entries = formats.map((format) => [format, { kind: 'text', segments: segmentsOf(format) }] as const);
  const formatter = new JsonFormatter({ kind: 'object', entries }, { isTyped: true, omitEmptyValues: false });
  const values = JSON.parse(formatter.render(facts)) as Record<string, unknown>;
  const numbers = Object.entries(values)
    .filter(([, value]) => typeof value === 'number')
    .map(([format]) => format.slice(1, -1).replace(/\(.*/, ''));
  assert.deepEqual(numbers.toSorted(), [
    'BYTES_RECEIVED',
    'BYTES_RETRANSMITTED',
    'BYTES_SENT',
    'COMMON_DURATION',
    'CONNECTION_ID',
    'DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED',
    'DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT',
    'DOWNSTREAM_DIRECT_LOCAL_PORT',
    'DOWNSTREAM_DIRECT_REMOTE_PORT',
    'DOWNSTREAM_HANDSHAKE_DURATION',
    'DOWNSTREAM_HEADER_BYTES_RECEIVED',
    'DOWNSTREAM_HEADER_BYTES_SENT',
    'DOWNSTREAM_LOCAL_PORT',
    'DOWNSTREAM_REMOTE_PORT',
    'DOWNSTREAM_WIRE_BYTES_RECEIVED',
    'DOWNSTREAM_WIRE_BYTES_SENT',
    'DURATION',
    'GRPC_STATUS_NUMBER',
    'PACKETS_RETRANSMITTED',
    'REQUEST_DURATION',
    'REQUEST_HEADERS_BYTES',
    'REQUEST_TX_DURATION',
    'RESPONSE_CODE',
    'RESPONSE_DURATION',
    'RESPONSE_HEADERS_BYTES',
    'RESPONSE_TRAILERS_BYTES',
    'RESPONSE_TX_DURATION',
    'UPSTREAM_CONNECTION_ID',
    'UPSTREAM_CONNECTION_POOL_READY_DURATION',
    'UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED',
    'UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT',
    'UPSTREAM_HEADER_BYTES_RECEIVED',
    'UPSTREAM_HEADER_BYTES_SENT',
    'UPSTREAM_LOCAL_PORT',
    'UPSTREAM_REMOTE_PORT',
    'UPSTREAM_REQUEST_ATTEMPT_COUNT',
    'UPSTREAM_WIRE_BYTES_RECEIVED',
    'UPSTREAM_WIRE_BYTES_SENT',
  ]);
});
