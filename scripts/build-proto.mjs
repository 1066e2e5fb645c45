// Compiles proto/ to what the loader needs:
//
//   build/proto/bundle.json                     reflection bundle for protobufjs, read at start
//   build/proto/comments.json                   comments by full name, read by --print-schema only
//   src/config/proto/generated/                 TypeScript shapes of messages, and enums; committed
//   src/library/generated/bootstrap.ts          types of a bootstrap for users of the library; committed
//
// `--check` writes nothing and fails when the committed files are older than the sources.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import protobuf from 'protobufjs';
import pbjs from 'protobufjs-cli/pbjs.js';
import { renderBootstrapTypes } from './bootstrap-types.mjs';
import { renderTypes } from './proto-types.mjs';

const SOURCE_FOLDER = 'proto';
const BUNDLE = 'build/proto/bundle.json';
const COMMENTS = 'build/proto/comments.json';
const TYPES_FOLDER = 'src/config/proto/generated';
const BOOTSTRAP_TYPES = 'src/library/generated/bootstrap.ts';

function protoFiles(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.proto'));
  return files.map((file) => path.join(file.parentPath, file.name)).sort();
}

/**
 * Takes out what only the compiler needs: the descriptor types and the declarations of our own options
 * (their values stay on the fields). A third of the bundle, and of the time to load it.
 */
function dropCompileTimeTypes(bundle) {
  const google = bundle.nested.google.nested.protobuf.nested;
  for (const [name, type] of Object.entries(google)) if (type.edition === 'proto2') delete google[name];
  const declarations = bundle.nested.proxy.nested;
  for (const [name, entry] of Object.entries(declarations)) if (entry.extend) delete declarations[name];
}

async function compile() {
  const args = ['-t', 'json', '--keep-case', '-p', SOURCE_FOLDER, ...protoFiles(SOURCE_FOLDER)];
  const bundle = JSON.parse(await promisify(pbjs.main)(args));
  dropCompileTimeTypes(bundle);
  makeTypesAbsolute(bundle.nested, protobuf.Root.fromJSON(bundle));
  return bundle;
}

/** What stands before messages, fields and enums of ours, by full name. */
function comments() {
  const root = new protobuf.Root();
  for (const file of protoFiles(SOURCE_FOLDER)) {
    protobuf.parse(readFileSync(file, 'utf8'), root, { keepCase: true, alternateCommentMode: true });
  }
  const found = {};
  const note = (object) => {
    if (object.comment) found[object.fullName.slice(1)] = object.comment.replace(/\s+/g, ' ');
  };
  const visit = (namespace) => {
    for (const object of namespace.nestedArray ?? []) {
      note(object);
      for (const field of object.fieldsArray ?? []) note(field);
      visit(object);
    }
  };
  visit(root.lookup('proxy'));
  return found;
}

/** Whoever reads it then finds what a field holds without looking through packages for it. */
function makeTypesAbsolute(declarations, namespace) {
  for (const [name, { fields = {}, nested = {} }] of Object.entries(declarations)) {
    const object = namespace.get(name);
    for (const [fieldName, field] of Object.entries(fields)) {
      const { resolvedType } = object.fields[fieldName];
      if (resolvedType) field.type = resolvedType.fullName;
    }
    makeTypesAbsolute(nested, object);
  }
}

function readIfPresent(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function writeIfChanged(file, text) {
  if (readIfPresent(file) === text) return;
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}

const bundle = await compile();
const root = protobuf.Root.fromJSON(bundle).resolveAll();
const shapes = Object.entries(renderTypes(root));
const generated = [
  ...shapes.map(([file, text]) => [path.join(TYPES_FOLDER, file), text]),
  [BOOTSTRAP_TYPES, renderBootstrapTypes(root)],
];

if (process.argv.includes('--check')) {
  const stale = generated.filter(([file, text]) => readIfPresent(file) !== text).map(([file]) => file);
  if (stale.length > 0) {
    console.error(`older than ${SOURCE_FOLDER}/: ${stale.join(', ')}; run node scripts/build-proto.mjs`);
    process.exit(1);
  }
} else {
  writeIfChanged(BUNDLE, JSON.stringify(bundle));
  writeIfChanged(COMMENTS, JSON.stringify(comments()));
  for (const [file, text] of generated) writeIfChanged(file, text);
}
