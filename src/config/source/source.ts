// Opens one configuration source: a file whose extension names its form, or the text of --config-yaml. Every
// way in which a source can be unreadable ends here in one fault.
// Main thread, synchronous: there is nothing to serve before the configuration is read.

import path from 'node:path';
import { errorMessage } from '../../base/errors.ts';
import { readWholeFile } from '../../base/file-bytes.ts';
import type { ConfigFault } from '../fault.ts';
import { type DocumentLayer, positionIn } from './config-document.ts';
import { parseJson } from './json-tree.ts';
import type { MapNode, ValueNode } from './node.ts';
import { decodeUtf8, SourceText } from './source-text.ts';
import { SyntaxFault } from './syntax-error.ts';
import { parseTextProto } from './text-tree.ts';
import { parseYaml } from './yaml-tree.ts';

/** How file and fault messages name the text of the option. */
export const CONFIG_YAML_NAME = '--config-yaml';

/** A source is refused above this before it is read: 14 times the bootstrap of 5,000 clusters. */
export const MAX_SOURCE_BYTES: number = 32 * 1024 * 1024;

type TextualForm = 'json' | 'yaml' | 'text';
type SourceForm = TextualForm | 'binary';

const FORM_OF_EXTENSION: Readonly<Record<string, SourceForm>> = {
  '.json': 'json',
  '.yaml': 'yaml',
  '.yml': 'yaml',
  '.pb': 'binary',
  '.pb_text': 'text',
  '.pbtxt': 'text',
  '.textproto': 'text',
};

export interface TreeSource {
  /** `json` for YAML as well: both follow protobuf's JSON mapping. */
  readonly dialect: 'json' | 'text';
  readonly layer: DocumentLayer;
  readonly root: MapNode;
}

export interface BinarySource {
  readonly dialect: 'binary';
  readonly layer: DocumentLayer;
  readonly bytes: Uint8Array;
}

export type Source = TreeSource | BinarySource;
export type OpenedSource = { readonly source: Source } | { readonly fault: ConfigFault };

/** Reads the file at `file`, by the form that its extension names. */
export function openFile(file: string): OpenedSource {
  const form = FORM_OF_EXTENSION[path.extname(file).toLowerCase()];
  if (form === undefined) return refuse(file, `unknown file extension; expected ${listExtensions()}`);
  const read = readBytes(file);
  if ('problem' in read) return refuse(file, read.problem);
  return parseBytes(file, form, read.bytes);
}

/** Reads the text of --config-yaml, which may be JSON: that is YAML too, but for its tabs. */
export function openConfigYaml(text: string): OpenedSource {
  if (Buffer.byteLength(text) > MAX_SOURCE_BYTES) return refuse(CONFIG_YAML_NAME, tooLarge(Buffer.byteLength(text)));
  const nul = text.indexOf('\0');
  if (nul !== -1) return refuse(CONFIG_YAML_NAME, 'contains a NUL character');
  const form = /^\s*\{/.test(text) && isJson(text) ? 'json' : 'yaml';
  return parseText(new SourceText(CONFIG_YAML_NAME, text), form);
}

/** Parses bytes that came from somewhere else, as a test or the library has them. */
export function parseBytes(name: string, form: SourceForm, bytes: Uint8Array): OpenedSource {
  if (bytes.length === 0) return refuse(name, 'file is empty');
  if (form === 'binary') {
    return { source: { dialect: 'binary', layer: { source: new SourceText(name, ''), root: undefined }, bytes } };
  }
  const decoded = decodeUtf8(bytes);
  if ('problem' in decoded) {
    return { fault: { ...faultOf(name, decoded.problem), line: decoded.line } };
  }
  return parseText(new SourceText(name, decoded.text), form);
}

function parseText(source: SourceText, form: TextualForm): OpenedSource {
  try {
    const root = parseTree(source.text, form);
    if (root === undefined) return refuse(source.name, `holds no configuration`);
    if (root.kind !== 'map') {
      return { fault: { ...faultOf(source.name, topLevelProblem(root)), ...positionIn(source, root.offset) } };
    }
    return { source: { dialect: form === 'text' ? 'text' : 'json', layer: { source, root }, root } };
  } catch (error) {
    if (!(error instanceof SyntaxFault)) throw error;
    return { fault: { ...faultOf(source.name, error.message), ...positionIn(source, error.offset) } };
  }
}

function parseTree(text: string, form: TextualForm): ValueNode | undefined {
  if (form === 'json') return parseJson(text);
  if (form === 'yaml') return parseYaml(text);
  const root = parseTextProto(text);
  return root.entries.length === 0 ? undefined : root;
}

function topLevelProblem(root: ValueNode): string {
  return `top level must be a map of fields, got ${root.kind === 'scalar' ? 'a single value' : `a ${root.kind}`}`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

type ReadBytes = { readonly bytes: Uint8Array } | { readonly problem: string };

function readBytes(file: string): ReadBytes {
  const { bytes, problem, error } = readWholeFile(file, MAX_SOURCE_BYTES);
  if (bytes !== undefined) return { bytes };
  return { problem: problem ?? systemProblem(error) };
}

function tooLarge(size: number): string {
  return `${size} bytes exceed the limit ${MAX_SOURCE_BYTES}`;
}

const SYSTEM_PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  ENOTDIR: 'no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'too many symbolic links',
  ENAMETOOLONG: 'file name is too long',
};

function systemProblem(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return SYSTEM_PROBLEMS[code] ?? `cannot be read: ${errorMessage(error)}`;
}

function listExtensions(): string {
  return Object.keys(FORM_OF_EXTENSION).join(', ');
}

function refuse(name: string, message: string): OpenedSource {
  return { fault: faultOf(name, message) };
}

function faultOf(name: string, message: string): ConfigFault {
  return { path: '', message, file: name, line: 0, column: 0, severity: 'error' };
}
