// Version 1 of the PROXY header, a line of text:
//
//   PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n
//   PROXY UNKNOWN …\r\n
//
// At most 107 bytes, single spaces, no leading zeros: what can be read in two ways is refused.

import { isIPv4, isIPv6 } from 'node:net';
import { canonicalIp } from '../../../base/ip-number.ts';
import { plainAddress } from '../../network/peer-address.ts';
import { BROKEN, compareSignature, INCOMPLETE, type ProxyHeaderResult } from './proxy-header.ts';

const SIGNATURE = Buffer.from('PROXY ');
const MAX_LENGTH = 107;
const UNKNOWN = 'UNKNOWN';
const PORT = /^(?:0|[1-9][0-9]{0,4})$/;
const MAX_PORT = 65_535;
const CARRIAGE_RETURN = 13;
const LINE_FEED = 10;

export function parseProxyV1(bytes: Buffer, start: number, end: number): ProxyHeaderResult {
  const signature = compareSignature(bytes, start, end, SIGNATURE);
  if (signature !== 'equal') return signature;
  const limit = Math.min(end, start + MAX_LENGTH);
  const lineFeed = bytes.subarray(start, limit).indexOf(LINE_FEED);
  if (lineFeed === -1) return limit === start + MAX_LENGTH ? BROKEN : INCOMPLETE;
  if (bytes[start + lineFeed - 1] !== CARRIAGE_RETURN) return BROKEN;
  return parseLine(bytes.toString('latin1', start + SIGNATURE.length, start + lineFeed - 1), lineFeed + 1);
}

function parseLine(line: string, length: number): ProxyHeaderResult {
  // Whatever follows is to be ignored, but a carriage return inside could hide a line from another reader.
  if (line.includes('\r')) return BROKEN;
  if (line === UNKNOWN || line.startsWith(`${UNKNOWN} `)) return { length, addresses: null };
  const [family, source, destination, sourcePort, destinationPort, ...rest] = line.split(' ');
  if (source === undefined || destination === undefined || sourcePort === undefined) return BROKEN;
  if (destinationPort === undefined || rest.length > 0) return BROKEN;
  if (!isAddressOf(family!, source) || !isAddressOf(family!, destination)) return BROKEN;
  if (!isPort(sourcePort) || !isPort(destinationPort)) return BROKEN;
  const addresses = {
    remoteAddress: plainAddress(canonicalIp(source)),
    remotePort: Number(sourcePort),
    localAddress: plainAddress(canonicalIp(destination)),
    localPort: Number(destinationPort),
  };
  return { length, addresses };
}

function isAddressOf(family: string, text: string): boolean {
  if (family === 'TCP4') return isIPv4(text);
  // A zone means nothing on another machine.
  return family === 'TCP6' && isIPv6(text) && !text.includes('%');
}

function isPort(text: string): boolean {
  return PORT.test(text) && Number(text) <= MAX_PORT;
}
