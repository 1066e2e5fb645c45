// Entries of access logs as messages (envoy.data.accesslog, v2 and v3 alike), by the numbers of their fields.

import { isIP } from 'node:net';
import { type Endpoint, type FormatFacts, flagNumbers, type ReadTag } from '../../../data-plane/index.ts';
import { MessageWriter } from '../../filters.http/grpc/wire.ts';
import type { GrpcLogSettings } from './settings.ts';

const PROTOCOLS: Readonly<Record<string, number>> = { 'HTTP/1.0': 1, 'HTTP/1.1': 2, 'HTTP/2': 3 };
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'];
const TLS_VERSIONS = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3'];
/** Numbers of AccessLogType. */
const LOG_TYPES: Readonly<Record<string, number>> = {
  TcpUpstreamConnected: 1,
  TcpPeriodic: 2,
  TcpConnectionEnd: 3,
  DownstreamStart: 4,
  DownstreamPeriodic: 5,
  DownstreamEnd: 6,
  DownstreamTunnelSuccessfullyEstablished: 10,
  TcpConnectionStart: 14,
};
/** The one flag that is a message: who has refused. */
const UNAUTHORIZED = 13;

type HttpSettings = Pick<GrpcLogSettings, 'requestHeaders' | 'responseHeaders' | 'responseTrailers'>;

export function encodeHttpEntry(facts: FormatFacts, settings: HttpSettings, tags: readonly ReadTag[]): Buffer {
  const writer = new MessageWriter();
  writer.message(1, (entry) => {
    entry.message(1, (common) => writeCommon(common, facts, tags));
    entry.integer(2, PROTOCOLS[facts.protocol] ?? 0);
    entry.message(3, (request) => writeRequest(request, facts, settings));
    entry.message(4, (response) => writeResponse(response, facts, settings));
  });
  return writer.finish();
}

export function encodeTcpEntry(facts: FormatFacts, tags: readonly ReadTag[]): Buffer {
  const writer = new MessageWriter();
  writer.message(1, (entry) => {
    entry.message(1, (common) => writeCommon(common, facts, tags));
    entry.message(2, (connection) => {
      connection.integer(1, facts.bytesReceived);
      connection.integer(2, facts.bytesSent);
    });
  });
  return writer.finish();
}

function writeCommon(common: MessageWriter, facts: FormatFacts, tags: readonly ReadTag[]): void {
  const { downstream, upstream } = facts;
  writeAddress(common, 2, facts.client);
  writeAddress(common, 3, downstream.local);
  if (downstream.tls !== null) common.message(4, (tls) => writeTls(tls, downstream.tls!));
  writeTime(common, 5, facts.startTimeMs);
  writeDuration(common, 6, facts.requestDurationMs);
  writeDuration(common, 8, facts.requestTxDurationMs);
  writeDuration(common, 9, facts.responseDurationMs);
  writeDuration(common, 12, facts.durationMs);
  if (upstream !== null) {
    writeAddress(common, 13, upstream.remote);
    writeAddress(common, 14, upstream.local);
  }
  common.text(15, facts.upstreamCluster);
  const flags = flagNumbers(facts.flags);
  if (flags.length > 0) common.message(16, (message) => writeFlags(message, flags));
  const metadata = Object.entries(facts.metadata('DYNAMIC') ?? {});
  if (metadata.length > 0) {
    common.message(17, (message) => {
      for (const [name, values] of metadata) message.entry(1, name, (entry) => entry.struct(2, values));
    });
  }
  common.text(18, facts.upstreamTransportFailure);
  common.text(19, facts.routeName);
  writeAddress(common, 20, downstream.directRemote);
  for (const read of tags) {
    const tag = read(facts);
    if (tag !== null) common.message(22, (entry) => writePair(entry, tag[0], tag[1]));
  }
  writeDuration(common, 23, facts.durationMs);
  common.integer(24, facts.attempts);
  common.text(25, facts.connectionTerminationDetails);
  common.byteText(26, facts.streamId);
  common.text(28, downstream.transportFailure);
  common.integer(33, LOG_TYPES[facts.accessLogType] ?? 0);
}

function writeRequest(request: MessageWriter, facts: FormatFacts, { requestHeaders }: HttpSettings): void {
  const header = (name: string): string => facts.requestHeader(name) ?? '';
  request.integer(1, METHODS.indexOf(header(':method')) + 1);
  request.byteText(2, header(':scheme'));
  request.byteText(3, header(':authority'));
  request.byteText(5, header(':path'));
  request.byteText(6, header('user-agent'));
  request.byteText(7, header('referer'));
  request.byteText(8, header('x-forwarded-for'));
  request.byteText(9, header('x-request-id'));
  request.byteText(10, header('x-proxy-original-path'));
  request.integer(11, facts.requestHeadersBytes);
  request.integer(12, facts.bytesReceived);
  writeChosen(request, 13, requestHeaders, (name) => facts.requestHeader(name));
}

function writeResponse(
  response: MessageWriter,
  facts: FormatFacts,
  { responseHeaders, responseTrailers }: HttpSettings,
): void {
  if (facts.status > 0) response.message(1, (code) => code.integer(1, facts.status));
  response.integer(2, facts.responseHeadersBytes);
  response.integer(3, facts.bytesSent);
  writeChosen(response, 4, responseHeaders, (name) => facts.responseHeader(name));
  writeChosen(response, 5, responseTrailers, (name) => facts.responseTrailer(name));
  response.text(6, facts.details);
}

function writeChosen(
  message: MessageWriter,
  field: number,
  names: readonly string[],
  read: (name: string) => string | undefined,
): void {
  for (const name of names) {
    const value = read(name);
    if (value !== undefined) message.message(field, (entry) => writePair(entry, name, value));
  }
}

function writePair(entry: MessageWriter, key: string, value: string): void {
  entry.byteText(1, key);
  entry.byteText(2, value);
}

function writeFlags(message: MessageWriter, flags: readonly number[]): void {
  for (const number of flags) {
    if (number === UNAUTHORIZED) message.message(number, (reason) => reason.integer(1, 1));
    else message.integer(number, 1);
  }
}

type Tls = NonNullable<FormatFacts['downstream']['tls']>;

function writeTls(message: MessageWriter, { version, serverName, own, peer }: Tls): void {
  message.integer(1, TLS_VERSIONS.indexOf(version) + 1);
  message.text(3, serverName);
  if (own !== null) message.message(4, (certificate) => writeCertificate(certificate, own));
  if (peer !== null) message.message(5, (certificate) => writeCertificate(certificate, peer));
}

function writeCertificate(message: MessageWriter, { names, subject, issuer }: NonNullable<Tls['peer']>): void {
  for (const uri of names.uri) message.message(1, (name) => name.text(1, uri));
  for (const dns of names.dns) message.message(1, (name) => name.text(2, dns));
  message.text(2, subject);
  message.text(3, issuer);
}

/** What is no IP address is the path of a pipe; no address is not written. */
function writeAddress(holder: MessageWriter, field: number, { ip, port }: Endpoint): void {
  if (ip === '') return;
  holder.message(field, (address) => {
    if (isIP(ip) === 0) address.message(2, (pipe) => pipe.text(1, ip));
    else {
      address.message(1, (socket) => {
        socket.text(2, ip);
        socket.integer(3, port);
      });
    }
  });
}

function writeTime(holder: MessageWriter, field: number, unixMs: number): void {
  holder.message(field, (time) => {
    const seconds = Math.floor(unixMs / 1000);
    time.integer(1, seconds);
    time.integer(2, Math.trunc((unixMs - seconds * 1000) * 1e6));
  });
}

/** A moment that has not come is not written. */
function writeDuration(holder: MessageWriter, field: number, ms: number): void {
  if (ms < 0) return;
  holder.message(field, (duration) => {
    duration.integer(1, Math.trunc(ms / 1000));
    duration.integer(2, (ms % 1000) * 1e6);
  });
}
