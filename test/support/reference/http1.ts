// The HTTP/1 codec once more, plainly: strings, regular expressions, one pass per question. Slow on purpose and
// without a line in common with the real one, so that both agree only where both are right.

export interface Limits {
  readonly maxHeadBytes: number;
  readonly maxFields: number;
  /** Of responses: a Content-Length beside Transfer-Encoding is dropped. */
  readonly takesChunkedLength?: boolean;
}

export interface Field {
  readonly name: string;
  readonly value: string;
  dropped: boolean;
}

export interface Head {
  readonly length: number;
  readonly minor: number;
  readonly fields: Field[];
  framing: 'none' | 'length' | 'chunked' | 'until-close' | 'tunnel';
  contentLength: number;
  persistent: boolean;
  upgrade: boolean;
}

export interface Request extends Head {
  readonly method: string;
  readonly target: string;
  readonly path: string;
  readonly authority: string;
  readonly expect: '' | 'continue' | 'other';
}

export interface Response extends Head {
  readonly status: number;
  readonly reason: string;
}

/** The reason that codecError() gives. */
export interface Fault {
  readonly error: string;
}

export type Result<T> = T | Fault | undefined;

const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]";
const REG_NAME = "[!$&'()*+\\-._;=~0-9A-Za-z]+";
const HOST = `(?:\\[[0-9A-Fa-f:.]{2,}\\]|${REG_NAME})`;
const IS_TOKEN = new RegExp(TOKEN);
const IS_OPTION = new RegExp(`^${TOKEN}*$`);
const AUTHORITY = new RegExp(`^${HOST}(?::([0-9]{1,5}))?$`);
const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-connection', 'te', 'upgrade'];
const PROTECTED = [
  'host',
  'content-length',
  'transfer-encoding',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
];

class Refusal extends Error {}

function refuse(reason: string): never {
  throw new Refusal(reason);
}

const isControl = (char: string): boolean => (char < ' ' && char !== '\t') || char === '\x7f';

/** Text of a latin1 buffer, read from the left; every reader refuses at the first byte that cannot go on. */
class Reader {
  readonly text: string;
  at = 0;

  constructor(text: string) {
    this.text = text;
  }

  get here(): string {
    if (this.at >= this.text.length) throw new Incomplete();
    return this.text[this.at]!;
  }

  while(test: (char: string) => boolean): string {
    const start = this.at;
    while (test(this.here)) this.at += 1;
    return this.text.slice(start, this.at);
  }

  expect(wanted: RegExp, reason: string): string {
    const char = this.here;
    if (!wanted.test(char)) refuse(reason);
    this.at += 1;
    return char;
  }

  lineEnd(other: string): void {
    if (this.here === '\n') refuse('line_end_invalid');
    this.expect(/\r/, other);
    this.expect(/\n/, 'line_end_invalid');
  }
}

class Incomplete extends Error {}

const isToken = (char: string): boolean => IS_TOKEN.test(char);

function isAuthority(text: string, needsPort = false): boolean {
  const match = AUTHORITY.exec(text);
  if (match === null || (needsPort && match[1] === undefined)) return false;
  return Number(match[1] ?? 0) <= 65535;
}

function readFields(reader: Reader, maxFields: number): Field[] {
  const fields: Field[] = [];
  while (reader.here !== '\r') {
    if (fields.length === maxFields) refuse('too_many_headers');
    const name = reader.while(isToken);
    if (reader.here !== ':' || name === '') {
      if (/[ \t]/.test(reader.here)) refuse(name === '' ? 'header_folded' : 'space_before_colon');
      refuse(name === '' && reader.here === '\n' ? 'line_end_invalid' : 'header_name_invalid');
    }
    reader.at += 1;
    const value = reader.while((char) => !isControl(char));
    reader.lineEnd('header_value_invalid');
    fields.push({ name: name.toLowerCase(), value: value.replace(/^[ \t]+|[ \t]+$/g, ''), dropped: false });
  }
  reader.at += 1;
  reader.expect(/\n/, 'line_end_invalid');
  return fields;
}

const named = (fields: readonly Field[], name: string): Field[] => fields.filter((field) => field.name === name);

/** Content-Length and Transfer-Encoding alone. */
function declaredFraming(head: Head, takesBoth = false): void {
  const lengths = named(head.fields, 'content-length');
  const encodings = named(head.fields, 'transfer-encoding');
  if (encodings.length > 0) {
    if (lengths.length > 0 && !takesBoth) refuse('content_length_with_transfer_encoding');
    for (const field of lengths) field.dropped = true;
    if (head.minor === 0) refuse('transfer_encoding_in_http_1_0');
    if (encodings.length > 1) refuse('transfer_encoding_repeated');
    if (encodings[0]!.value.toLowerCase() !== 'chunked') refuse('transfer_coding_not_supported');
    head.framing = 'chunked';
  } else if (lengths.length > 0) {
    if (lengths.length > 1) refuse('content_length_repeated');
    if (!/^[0-9]{1,15}$/.test(lengths[0]!.value)) refuse('content_length_invalid');
    head.contentLength = Number(lengths[0]!.value);
    if (head.contentLength > 0) head.framing = 'length';
  }
}

function readConnection(head: Head): void {
  const options: string[] = [];
  // A comma at the very end of a value starts no further element.
  for (const { value } of named(head.fields, 'connection')) {
    const elements = value.split(',');
    if (elements.at(-1) === '') elements.pop();
    for (const element of elements) {
      if (options.length === 32) refuse('connection_header_invalid');
      const option = element.replace(/^[ \t]+|[ \t]+$/g, '').toLowerCase();
      if (!IS_OPTION.test(option)) refuse('connection_header_invalid');
      if (PROTECTED.includes(option)) refuse('connection_header_invalid');
      options.push(option);
    }
  }
  for (const field of head.fields) {
    if (HOP_BY_HOP.includes(field.name)) field.dropped = true;
    if (options.includes(field.name) && field.name !== 'close') field.dropped = true;
  }
  head.upgrade = options.includes('upgrade') && named(head.fields, 'upgrade').length > 0;
  head.persistent = !options.includes('close') && (head.minor === 1 || options.includes('keep-alive'));
}

function readVersion(reader: Reader, bad: string, after: RegExp): number {
  for (const char of 'HTTP/') reader.expect(new RegExp(char), bad);
  const major = reader.expect(/[0-9]/, bad);
  reader.expect(/\./, bad);
  const minor = reader.expect(/[0-9]/, bad);
  if (!after.test(reader.here)) refuse(bad);
  if (major !== '1' || minor > '1') refuse('version_not_supported');
  return Number(minor);
}

interface TargetParts {
  readonly path: string;
  readonly authority: string;
}

function readTarget(method: string, target: string): TargetParts {
  if (method === 'CONNECT') {
    if (!isAuthority(target, true)) refuse('target_invalid');
    return { path: '', authority: target };
  }
  if (target.startsWith('/') || (target === '*' && method === 'OPTIONS')) return { path: target, authority: '' };
  const absolute = /^https?:\/\/([^/?]*)(.*)$/is.exec(target);
  if (absolute === null || !isAuthority(absolute[1]!)) refuse('target_invalid');
  const rest = absolute[2]!;
  if (rest === '') return { path: method === 'OPTIONS' ? '*' : '/', authority: absolute[1]! };
  return { path: rest.startsWith('/') ? rest : `/${rest}`, authority: absolute[1]! };
}

function readHost(fields: readonly Field[], minor: number): string {
  const hosts = named(fields, 'host');
  if (hosts.length === 0 && minor === 1) refuse('host_missing');
  if (hosts.length > 1) refuse('host_repeated');
  if (hosts.length === 1 && !isAuthority(hosts[0]!.value)) refuse('host_invalid');
  return hosts[0]?.value ?? '';
}

function guarded<T>(bytes: Buffer, limits: Limits, read: (reader: Reader) => T): Result<T> {
  try {
    return read(new Reader(bytes.subarray(0, limits.maxHeadBytes).toString('latin1')));
  } catch (error) {
    if (error instanceof Refusal) return { error: error.message };
    if (!(error instanceof Incomplete)) throw error;
    return bytes.length >= limits.maxHeadBytes ? { error: 'head_too_large' } : undefined;
  }
}

/** @returns the head, its fault, or undefined while it is incomplete. */
export function parseRequest(bytes: Buffer, limits: Limits): Result<Request> {
  return guarded(bytes, limits, (reader) => {
    if (reader.here === '\r') {
      reader.at += 1;
      reader.expect(/\n/, 'line_end_invalid');
    }
    const method = reader.while(isToken);
    if (method === '') refuse('method_invalid');
    reader.expect(/ /, 'method_invalid');
    const target = reader.while((char) => char > ' ' && char < '\x7f' && char !== '#');
    if (target === '') refuse('target_invalid');
    reader.expect(/ /, 'target_invalid');
    const minor = readVersion(reader, 'request_line_invalid', /[\r\n]/);
    reader.lineEnd('request_line_invalid');
    const fields = readFields(reader, limits.maxFields);
    const parts = readTarget(method, target);
    const host = readHost(fields, minor);
    const expectations = minor === 1 ? named(fields, 'expect').map((field) => field.value.toLowerCase()) : [];
    const head: Request = {
      length: reader.at,
      minor,
      fields,
      framing: 'none',
      contentLength: -1,
      persistent: false,
      upgrade: false,
      method,
      target,
      path: parts.path,
      authority: parts.authority === '' ? host : parts.authority,
      expect: expectations.length === 0 ? '' : expectations.join() === '100-continue' ? 'continue' : 'other',
    };
    declaredFraming(head, limits.takesChunkedLength);
    if (head.framing !== 'none' && ['CONNECT', 'TRACE'].includes(method)) refuse('body_forbidden');
    readConnection(head);
    if (head.framing === 'chunked' && named(fields, 'content-length').length > 0) head.persistent = false;
    return head;
  });
}

function dropFraming(head: Head): void {
  for (const field of head.fields) {
    if (field.name === 'content-length' || field.name === 'transfer-encoding') field.dropped = true;
  }
}

function decideResponseFraming(head: Response, method: string, takesBoth: boolean): void {
  declaredFraming(head, takesBoth);
  if (head.status < 200 || head.status === 204) {
    if (head.framing !== 'none') refuse('body_forbidden');
    dropFraming(head);
    if (head.status === 101) head.framing = 'tunnel';
  } else if (method === 'CONNECT' && head.status < 300) {
    dropFraming(head);
    head.framing = 'tunnel';
  } else if (method === 'HEAD' || head.status === 304) {
    head.framing = 'none';
  } else if (head.framing === 'none' && head.contentLength < 0) {
    head.framing = 'until-close';
  }
}

/** The same for the response to a request with `method`. */
export function parseResponse(bytes: Buffer, limits: Limits, method: string): Result<Response> {
  return guarded(bytes, limits, (reader) => {
    const minor = readVersion(reader, 'status_line_invalid', / /);
    reader.at += 1;
    let digits = reader.expect(/[1-9]/, 'status_line_invalid');
    digits += reader.expect(/[0-9]/, 'status_line_invalid');
    digits += reader.expect(/[0-9]/, 'status_line_invalid');
    let reason = '';
    if (reader.here === ' ') {
      reader.at += 1;
      reason = reader.while((char) => !isControl(char));
    }
    reader.lineEnd('status_line_invalid');
    const fields = readFields(reader, limits.maxFields);
    const head: Response = {
      length: reader.at,
      minor,
      fields,
      framing: 'none',
      contentLength: -1,
      persistent: false,
      upgrade: false,
      status: Number(digits),
      reason,
    };
    decideResponseFraming(head, method, limits.takesChunkedLength ?? false);
    readConnection(head);
    const isDoubtful = head.framing === 'chunked' && named(fields, 'content-length').length > 0;
    if (head.framing === 'until-close' || head.framing === 'tunnel' || isDoubtful) head.persistent = false;
    return head;
  });
}
