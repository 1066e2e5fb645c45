// From sources to one message with every fault of reading: the door of this folder. What comes out still has
// to pass the rules (rules/) and the checks between fields (resources/); both can point at file and line
// through the document that comes with the message.
//
//   file, --config-yaml → source.ts → tree or bytes → json-, text-, binary reading → merge.ts → message

import type { Message, Type } from 'protobufjs/light.js';
import { errorMessage } from '../../base/errors.ts';
import type { FaultList } from '../fault-list.ts';
import { ConfigDocument, type DocumentLayer, positionIn } from '../source/config-document.ts';
import {
  type BinarySource,
  type OpenedSource,
  openConfigYaml,
  openFile,
  parseBytes,
  type Source,
  type TreeSource,
} from '../source/source.ts';
import { SyntaxFault } from '../source/syntax-error.ts';
import { JsonReader } from './json-reader.ts';
import { mergeMessages } from './merge.ts';
import type { Generation } from './message-names.ts';
import { ReadContext } from './read-context.ts';
import { type ProtoSchema, protoSchema } from './root.ts';
import { settleExtensions } from './settle-extensions.ts';
import { TextReader } from './text-reader.ts';
import type { UnknownFieldPolicy } from './unknown-fields.ts';
import { decodeMessage } from './wire.ts';

export interface ReadOptions {
  /** Receives errors and the warnings of tolerated unknown fields. */
  readonly faults: FaultList;
  readonly unknownFields: UnknownFieldPolicy;
  /** Whose names hold where the two generations disagree and no type URL tells; v3 unless said otherwise. */
  readonly generation?: Generation;
  readonly schema?: ProtoSchema;
}

export interface ReadResult {
  /** Faulty fields are left unset; use it only to look for further faults when there were errors. */
  readonly message: Message;
  /** `v2` when anything was met that only the older generation writes. */
  readonly generation: Generation;
}

export interface LoadedMessage extends ReadResult {
  /** From a field path to file, line and column. */
  readonly document: ConfigDocument;
}

interface Readers {
  readonly json: JsonReader;
  readonly text: TextReader;
}

/** Readers keep compiled plans of the schema's messages, so there is one pair for each schema. */
const readersOf = new WeakMap<ProtoSchema, Readers>();

/** An opened source as a message of `type`; undefined when not even its syntax could be read. */
export function readMessage(type: Type, source: Source, options: ReadOptions): ReadResult | undefined {
  const schema = options.schema ?? protoSchema();
  const readers = readersFor(schema);
  const { faults, unknownFields, generation = 'v3' } = options;
  const { layer } = source;
  const context = new ReadContext({ schema, layer, faults, unknownFields, generation, readMessage: readers.json.read });
  try {
    const message = readDialect(context, readers, type, source, options);
    return message && { message, generation: context.sawOlderGeneration ? 'v2' : generation };
  } catch (error) {
    if (!(error instanceof SyntaxFault)) throw error;
    const path = context.path;
    faults.add({ path, message: error.message, severity: 'error', ...positionIn(layer.source, error.offset) });
    return undefined;
  }
}

function readersFor(schema: ProtoSchema): Readers {
  let readers = readersOf.get(schema);
  if (readers === undefined) {
    readers = { json: new JsonReader(schema), text: new TextReader(schema) };
    readersOf.set(schema, readers);
  }
  return readers;
}

function readDialect(
  context: ReadContext,
  readers: Readers,
  type: Type,
  source: Source,
  options: ReadOptions,
): Message | undefined {
  if (source.dialect === 'json') return settled(readers.json.read(context, type, source.root));
  const message =
    source.dialect === 'binary' ? decode(type, source, context) : readText(context, readers, type, source, options);
  if (message !== undefined) settleExtensions(context, type, message);
  return message;
}

function settled(message: Message | symbol): Message | undefined {
  return typeof message === 'symbol' ? undefined : message;
}

/** Text format has a reader of its own; only the opaque configurations in it are read as JSON, later. */
function readText(
  context: ReadContext,
  readers: Readers,
  type: Type,
  source: TreeSource,
  options: ReadOptions,
): Message | undefined {
  const { faults, unknownFields } = options;
  const { schema, generation } = context;
  const { layer, root } = source;
  const reading = new ReadContext({ schema, layer, faults, unknownFields, generation, readMessage: readers.text.read });
  const message = settled(readers.text.read(reading, type, root));
  context.sawOlderGeneration = reading.sawOlderGeneration;
  return message;
}

function decode(type: Type, source: BinarySource, context: ReadContext): Message | undefined {
  try {
    return decodeMessage(type, source.bytes);
  } catch (error) {
    context.fault(`not a binary ${type.name} message: ${errorMessage(error)}`, -1);
    return undefined;
  }
}

export interface LoadInput {
  /** Path of the file; empty when there is only `configYaml`. */
  readonly configPath: string;
  /** JSON text in the place of a file, as a program that embeds the proxy has it; absent otherwise. */
  readonly configJson?: string | undefined;
  /** Text of --config-yaml; empty when not given. */
  readonly configYaml: string;
}

/** Reads the file, the text, or the text merged over the file. Undefined when a source could not be read. */
export function loadMessage(type: Type, input: LoadInput, options: ReadOptions): LoadedMessage | undefined {
  const opened = openLower(input);
  const lower = opened && readOpened(type, opened, options);
  const upper = input.configYaml === '' ? undefined : readOpened(type, openConfigYaml(input.configYaml), options);
  const isIncomplete = (opened && !lower) || (input.configYaml !== '' && !upper);
  if (isIncomplete) return undefined;
  if (lower !== undefined && upper !== undefined) return merged(type, lower, upper);
  const only = lower ?? upper;
  if (only === undefined) {
    const message = 'at least one of --config-path and --config-yaml must be given';
    options.faults.add({ path: '', message, file: '', line: 0, column: 0, severity: 'error' });
    return undefined;
  }
  return { message: only.message, generation: only.generation, document: new ConfigDocument(only.layer) };
}

function openLower({ configPath, configJson }: LoadInput): OpenedSource | undefined {
  if (configJson !== undefined) return parseBytes('', 'json', Buffer.from(configJson));
  return configPath === '' ? undefined : openFile(configPath);
}

interface ReadLayer extends ReadResult {
  readonly layer: DocumentLayer;
}

function readOpened(type: Type, opened: OpenedSource, options: ReadOptions): ReadLayer | undefined {
  if ('fault' in opened) {
    options.faults.add(opened.fault);
    return undefined;
  }
  const read = readMessage(type, opened.source, options);
  return read && { ...read, layer: opened.source.layer };
}

function merged(type: Type, lower: ReadLayer, upper: ReadLayer): LoadedMessage {
  const appended = mergeMessages(type, lower.message, upper.message);
  const generation = lower.generation === 'v2' || upper.generation === 'v2' ? 'v2' : 'v3';
  const document = new ConfigDocument(lower.layer, upper.layer, appended);
  return { message: lower.message, generation, document };
}
