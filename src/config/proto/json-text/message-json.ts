// The JSON of a message, made of its binary form piece by piece: no object of the message ever exists, and whoever reads can
// stop after each piece. The bytes are those that this program has written itself (canonical: fields in the order of their
// numbers, the items of a list together).
//
// One space of indent for each level, names as the schema has them, what has its default value left out, keys and passwords
// replaced (redaction.ts). An Any shows the message in it, by the name that it has in the newer generation.

import { Reader, type Type } from 'protobufjs/light.js';
import { envoySpelling } from '../message-names.ts';
import { type ProtoSchema, typeName } from '../root.ts';
import type { MaskTree } from './field-mask.ts';
import {
  messageKind,
  type OutputField,
  OutputKind,
  type OutputPlan,
  outputPlan,
  type ScalarName,
  scalarKind,
  wrappedScalar,
} from './output-plan.ts';
import { isCredentialHeader, isSensitiveName, REDACTED } from './redaction.ts';
import { defaultText, durationText, fieldMaskText, numberText, scalarText, timestampText } from './scalar-text.ts';

/** Characters of a piece, and a little more. */
const PIECE_CHARS = 16 * 1024;

const TYPE_URL_HOST = 'type.googleapis.com';
const REDACTED_TEXT = JSON.stringify(REDACTED);
const REDACTED_BYTES = JSON.stringify(Buffer.from(REDACTED).toString('base64'));

/** What is hidden: nothing, texts (of a header with credentials), or everything. */
const Secrecy = { none: 0, texts: 1, all: 2 } as const;
type Secrecy = (typeof Secrecy)[keyof typeof Secrecy];

const FrameKind = { message: 0, struct: 1, list: 2 } as const;
type FrameKind = (typeof FrameKind)[keyof typeof FrameKind];

/** An object or list of which the beginning has been read. */
interface Frame {
  readonly kind: FrameKind;
  /** Of a message. */
  readonly plan: OutputPlan;
  /** Where its bytes end. */
  readonly end: number;
  readonly indent: number;
  /** The fields that are shown; undefined for all. */
  readonly mask: MaskTree | undefined;
  secrecy: Secrecy;
  isEmpty: boolean;
  /** The list or map whose items are being read. */
  open: OutputField | undefined;
}

export interface MessageJsonOptions {
  /** Levels around it; its first line is not indented. */
  readonly indent?: number;
  /** Only the fields that it names. */
  readonly mask?: MaskTree | undefined;
  /** Begins with the type, as an Any does. */
  readonly isAny?: boolean;
  /** Nothing is hidden: for whoever is meant to have it. */
  readonly revealsSecrets?: boolean;
}

/** `type.googleapis.com/envoy.…` of a message, as outputs name it. */
export function typeUrlOf(type: Type): string {
  return `${TYPE_URL_HOST}/${envoySpelling(typeName(type))}`;
}

/** @returns pieces of some 16 KiB, without a line's end behind the last. */
export function messageJson(
  schema: ProtoSchema,
  type: Type,
  bytes: Uint8Array,
  options: MessageJsonOptions = {},
): Generator<string, void, undefined> {
  return new MessageJson(schema, bytes, options.revealsSecrets !== true).pieces(type, options);
}

class MessageJson {
  readonly #schema: ProtoSchema;
  readonly #reader: Reader;
  readonly #hidesSecrets: boolean;
  readonly #frames: Frame[] = [];
  #text = '';

  constructor(schema: ProtoSchema, bytes: Uint8Array, hidesSecrets: boolean) {
    this.#schema = schema;
    this.#hidesSecrets = hidesSecrets;
    this.#reader = Reader.create(bytes);
  }

  *pieces(type: Type, { indent = 0, mask, isAny = false }: MessageJsonOptions): Generator<string, void, undefined> {
    if (isAny) this.#content(type, typeUrlOf(type), this.#reader.len, indent, mask, Secrecy.none);
    else this.#message(type, messageKind(type), this.#reader.len, indent, mask, Secrecy.none);
    while (this.#frames.length > 0) {
      this.#step(this.#frames.at(-1)!);
      if (this.#text.length >= PIECE_CHARS) {
        yield this.#text;
        this.#text = '';
      }
    }
    yield this.#text;
  }

  /** Of what is to be hidden. */
  get #all(): Secrecy {
    return this.#hidesSecrets ? Secrecy.all : Secrecy.none;
  }

  /** Reads the next item of the innermost object or list, or ends it. */
  #step(frame: Frame): void {
    if (this.#reader.pos >= frame.end) this.#close(frame);
    else if (frame.kind === FrameKind.message) this.#field(frame);
    else if (frame.kind === FrameKind.struct) this.#structEntry(frame);
    else this.#listItem(frame);
  }

  #close(frame: Frame): void {
    if (frame.open !== undefined) this.#closeField(frame);
    const [empty, end] = frame.kind === FrameKind.list ? ['[]', ']'] : ['{}', '}'];
    this.#text += frame.isEmpty ? empty : `\n${' '.repeat(frame.indent)}${end}`;
    this.#frames.pop();
  }

  #closeField(frame: Frame): void {
    const isMap = frame.open!.mapKey !== undefined;
    this.#text += `\n${' '.repeat(frame.indent + 1)}${isMap ? '}' : ']'}`;
    frame.open = undefined;
  }

  #field(frame: Frame): void {
    const reader = this.#reader;
    const tag = reader.uint32();
    const field = frame.plan[tag >>> 3];
    const submask = field && frame.mask?.get(field.name);
    if (field === undefined || (frame.mask !== undefined && submask === undefined)) {
      reader.skipType(tag & 7);
      return;
    }
    const secrecy = field.isSensitive ? this.#all : frame.secrecy;
    if (secrecy === Secrecy.all && hasNoText(field)) {
      reader.skipType(tag & 7);
      return;
    }
    const mask = submask === 'whole' ? undefined : submask;
    if (field.mapKey !== undefined) this.#mapEntry(frame, field, field.mapKey, mask, secrecy);
    else if (!field.isRepeated) this.#singleField(frame, field, mask, secrecy);
    else this.#items(frame, field, tag & 7, mask, secrecy);
  }

  #singleField(frame: Frame, field: OutputField, mask: MaskTree | undefined, secrecy: Secrecy): void {
    this.#member(frame, field.key);
    if (field.namesHeader && secrecy === Secrecy.none) {
      const name = this.#reader.string();
      this.#text += JSON.stringify(name);
      if (this.#hidesSecrets && isCredentialHeader(name)) frame.secrecy = Secrecy.texts;
      return;
    }
    this.#fieldValue(field, frame.indent + 1, mask, secrecy);
  }

  #items(frame: Frame, field: OutputField, wireType: number, mask: MaskTree | undefined, secrecy: Secrecy): void {
    const reader = this.#reader;
    const isPacked = wireType === 2 && field.kind > OutputKind.bytes && field.kind < OutputKind.wrapper;
    const end = isPacked ? reader.uint32() + reader.pos : 0;
    do {
      this.#item(frame, field, '[');
      this.#fieldValue(field, frame.indent + 2, mask, secrecy);
    } while (reader.pos < end);
  }

  #mapEntry(frame: Frame, field: OutputField, keyName: ScalarName, mask: MaskTree | undefined, secrecy: Secrecy): void {
    const reader = this.#reader;
    const end = reader.uint32() + reader.pos;
    reader.uint32();
    const key = String(reader[keyName]());
    reader.uint32();
    this.#item(frame, field, '{');
    this.#text += `${JSON.stringify(key)}: `;
    const hides = field.kind === OutputKind.struct && isSensitiveName(key);
    this.#fieldValue(field, frame.indent + 2, mask, hides ? this.#all : secrecy);
    // The value is what an entry ends with.
    if (this.#frames.at(-1) === frame) reader.pos = end;
  }

  /** Begins a list or map of a message where it is its first item, and leaves the place for one more. */
  #item(frame: Frame, field: OutputField, bracket: string): void {
    if (frame.open === field) this.#text += `,\n${' '.repeat(frame.indent + 2)}`;
    else {
      this.#member(frame, field.key);
      frame.open = field;
      this.#text += `${bracket}\n${' '.repeat(frame.indent + 2)}`;
    }
  }

  /** What stands before a member of an object. */
  #member(frame: Frame, key: string): void {
    if (frame.open !== undefined) this.#closeField(frame);
    this.#text += `${frame.isEmpty ? '{' : ','}\n${' '.repeat(frame.indent + 1)}${key}`;
    frame.isEmpty = false;
  }

  #fieldValue(field: OutputField, indent: number, mask: MaskTree | undefined, secrecy: Secrecy): void {
    const { kind, scalar, type } = field;
    const reader = this.#reader;
    if (kind >= OutputKind.wrapper) {
      const end = reader.uint32() + reader.pos;
      this.#message(type!, kind, end, indent, mask, secrecy);
    } else this.#scalar(kind, scalar, field.enumNames, secrecy);
  }

  #scalar(kind: OutputKind, scalar: ScalarName, enumNames: OutputField['enumNames'], secrecy: Secrecy): void {
    const reader = this.#reader;
    const isText = kind === OutputKind.string || kind === OutputKind.bytes;
    if (secrecy !== Secrecy.none && isText) {
      reader.skip(reader.uint32());
      this.#text += kind === OutputKind.bytes ? REDACTED_BYTES : REDACTED_TEXT;
    } else this.#text += scalarText(reader, kind, scalar, enumNames);
  }

  /** A message or what is written like a value of its own, whose bytes begin here. */
  #message(
    type: Type,
    kind: OutputKind,
    end: number,
    indent: number,
    mask: MaskTree | undefined,
    secrecy: Secrecy,
  ): void {
    switch (kind) {
      case OutputKind.wrapper:
        this.#wrapper(wrappedScalar(type), end, secrecy);
        break;
      case OutputKind.duration:
        this.#text += durationText(this.#reader, end);
        break;
      case OutputKind.timestamp:
        this.#text += timestampText(this.#reader, end);
        break;
      case OutputKind.fieldMask:
        this.#text += fieldMaskText(this.#reader, end);
        break;
      case OutputKind.any:
        this.#any(end, indent, mask, secrecy);
        break;
      case OutputKind.value:
        this.#value(end, indent, secrecy);
        break;
      case OutputKind.struct:
        this.#push(FrameKind.struct, [], end, indent, undefined, secrecy);
        break;
      case OutputKind.list:
        this.#push(FrameKind.list, [], end, indent, undefined, secrecy);
        break;
      default:
        this.#push(FrameKind.message, outputPlan(type), end, indent, mask, secrecy);
    }
  }

  #push(
    kind: FrameKind,
    plan: OutputPlan,
    end: number,
    indent: number,
    mask: MaskTree | undefined,
    secrecy: Secrecy,
  ): Frame {
    const frame: Frame = {
      kind,
      plan,
      end,
      indent,
      mask,
      secrecy,
      isEmpty: true,
      open: undefined,
    };
    this.#frames.push(frame);
    return frame;
  }

  #wrapper(scalar: ScalarName, end: number, secrecy: Secrecy): void {
    const kind = scalarKind(scalar);
    if (this.#reader.pos >= end) {
      this.#text += defaultText(kind);
      return;
    }
    this.#reader.uint32();
    this.#scalar(kind, scalar, {}, secrecy);
  }

  #any(end: number, indent: number, mask: MaskTree | undefined, secrecy: Secrecy): void {
    const reader = this.#reader;
    let typeUrl = '';
    while (reader.pos < end) {
      const tag = reader.uint32();
      if (tag >>> 3 === 1) typeUrl = reader.string();
      else if (tag >>> 3 === 2) break;
      else reader.skipType(tag & 7);
    }
    if (typeUrl === '') {
      reader.pos = end;
      this.#text += '{}';
      return;
    }
    const type = this.#schema.find(typeUrl)?.type;
    if (type === undefined) {
      // Nothing can be said of what is in it, so that all of it may be secret.
      reader.pos = end;
      this.#text += `{\n${' '.repeat(indent + 1)}"@type": ${JSON.stringify(typeUrl)}\n${' '.repeat(indent)}}`;
      return;
    }
    const contentEnd = reader.pos < end ? reader.uint32() + reader.pos : end;
    this.#content(type, typeUrlOf(type), contentEnd, indent, mask, secrecy);
  }

  /** A message with its type, as an Any shows it. */
  #content(
    type: Type,
    typeUrl: string,
    end: number,
    indent: number,
    mask: MaskTree | undefined,
    secrecy: Secrecy,
  ): void {
    const kind = messageKind(type);
    const isPlain = kind === OutputKind.message;
    const frame = this.#push(FrameKind.message, isPlain ? outputPlan(type) : [], end, indent, mask, secrecy);
    this.#member(frame, `"@type": ${JSON.stringify(typeUrl)}`);
    if (isPlain) return;
    this.#member(frame, '"value": ');
    this.#message(type, kind, end, indent + 1, undefined, secrecy);
  }

  /** Of a Struct: an entry of its map. */
  #structEntry(frame: Frame): void {
    const reader = this.#reader;
    reader.uint32();
    const end = reader.uint32() + reader.pos;
    reader.uint32();
    const key = reader.string();
    this.#member(frame, `${JSON.stringify(key)}: `);
    reader.uint32();
    reader.uint32();
    this.#value(end, frame.indent + 1, isSensitiveName(key) ? this.#all : frame.secrecy);
  }

  #listItem(frame: Frame): void {
    const reader = this.#reader;
    reader.uint32();
    const end = reader.uint32() + reader.pos;
    this.#text += `${frame.isEmpty ? '[' : ','}\n${' '.repeat(frame.indent + 1)}`;
    frame.isEmpty = false;
    this.#value(end, frame.indent + 1, frame.secrecy);
  }

  /** A google.protobuf.Value. */
  #value(end: number, indent: number, secrecy: Secrecy): void {
    const reader = this.#reader;
    const fieldNumber = reader.pos < end ? reader.uint32() >>> 3 : 0;
    if (fieldNumber === 5 || fieldNumber === 6) {
      reader.uint32();
      this.#push(fieldNumber === 5 ? FrameKind.struct : FrameKind.list, [], end, indent, undefined, secrecy);
      return;
    }
    if (secrecy === Secrecy.none) this.#text += this.#plainValue(fieldNumber);
    else this.#text += fieldNumber <= 1 ? 'null' : REDACTED_TEXT;
    reader.pos = end;
  }

  #plainValue(fieldNumber: number): string {
    const reader = this.#reader;
    if (fieldNumber === 2) return numberText(reader.double());
    if (fieldNumber === 3) return JSON.stringify(reader.string());
    return fieldNumber === 4 ? String(reader.bool()) : 'null';
  }
}

/** Left out where all is hidden: in the place of a text stands another one, but a number would be a lie. */
function hasNoText({ kind, scalar }: OutputField): boolean {
  if (kind === OutputKind.wrapper) return scalar !== 'string' && scalar !== 'bytes';
  return kind > OutputKind.bytes && kind <= OutputKind.fieldMask;
}
