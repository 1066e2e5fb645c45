// From where a filter of the user's own lies to its definition, in whichever thread asks. What is loaded stays for the life of the
// thread, as modules do.

import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { errorMessage, WeirError } from '../base/errors.ts';
import type { BodyUse, HttpFilterDefinition } from './interface.ts';
import type { FilterSource } from './source.ts';

export type Definition = HttpFilterDefinition & { readonly requestBody: BodyUse; readonly responseBody: BodyUse };

const FUNCTIONS = ['create', 'checkConfig'] as const;
const BODIES = ['requestBody', 'responseBody'] as const;
const USES: ReadonlySet<unknown> = new Set<BodyUse>(['none', 'reads', 'edits']);

const loaded = new Map<string, Definition>();

/** @throws WeirError WEIR_FILTER_MODULE that says what is wrong with it. */
export function loadDefinition(source: FilterSource): Definition {
  const key = JSON.stringify(source);
  let definition = loaded.get(key);
  if (definition === undefined) {
    definition = source.kind === 'module' ? definitionIn(source.path) : definitionOf(source);
    loaded.set(key, definition);
  }
  return definition;
}

/**
 * @param module a path from the working directory, a file URL, or the name of a package that is installed there.
 * @throws WeirError WEIR_FILTER_MODULE where there is none.
 */
export function findModule(module: string): FilterSource {
  try {
    const isPath = /^\.{0,2}\//.test(module) || path.isAbsolute(module);
    const place = module.startsWith('file:') ? fileURLToPath(module) : isPath ? path.resolve(module) : module;
    return { kind: 'module', path: requireHere().resolve(place) };
  } catch (error) {
    throw moduleError(errorMessage(error).split('\n')[0]!);
  }
}

/** @param given a definition, or its `create`. @throws WeirError WEIR_FILTER_MODULE for anything else. */
export function sourceOfGiven(given: unknown): FilterSource {
  const definition = checked(given);
  const { requestBody, responseBody } = definition;
  const texts: Record<string, string> = {};
  for (const name of FUNCTIONS) {
    const act = definition[name];
    if (act !== undefined) texts[name] = Function.prototype.toString.call(act);
  }
  const source: FilterSource = { kind: 'texts', texts, requestBody, responseBody };
  // Finds functions without a text.
  loadDefinition(source);
  return source;
}

/** Of the working directory. Test runners have a `require` of their own, which would read modules in its own way. */
function requireHere(): NodeJS.Require {
  return createRequire(pathToFileURL(`${process.cwd()}${path.sep}`));
}

function definitionIn(place: string): Definition {
  let exported: unknown;
  try {
    exported = requireHere()(place);
  } catch (error) {
    const hasWait = (error as { readonly code?: unknown })?.code === 'ERR_REQUIRE_ASYNC_MODULE';
    throw moduleError(hasWait ? 'a module with await outside of functions cannot be a filter' : errorMessage(error));
  }
  const isNamespace = typeof exported === 'object' && exported !== null && 'default' in exported;
  return checked(isNamespace ? (exported as { readonly default: unknown }).default : exported);
}

function definitionOf({ texts, requestBody, responseBody }: Extract<FilterSource, { kind: 'texts' }>): Definition {
  const functions = Object.entries(texts).map(([name, text]) => [name, functionOf(name, text)]);
  return { ...(Object.fromEntries(functions) as HttpFilterDefinition), requestBody, responseBody };
}

/** A function may have been written as an expression or as a method. */
function functionOf(name: string, text: string): unknown {
  for (const expression of [`(${text})`, `({${text}})[${JSON.stringify(name)}]`]) {
    try {
      return new Function(`'use strict'; return ${expression};`)();
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw moduleError(errorMessage(error));
    }
  }
  throw moduleError(`${name} has no text that could be sent to the worker threads: ${text.slice(0, 60)}`);
}

function checked(given: unknown): Definition {
  const definition = (typeof given === 'function' ? { create: given } : given) as HttpFilterDefinition;
  if (typeof definition !== 'object' || definition === null) {
    throw moduleError(
      'expected a definition with create(config, context), or that function alone, as its default export',
    );
  }
  for (const name of FUNCTIONS) {
    const act: unknown = definition[name];
    if (typeof act === 'function' || (act === undefined && name !== 'create')) continue;
    throw moduleError(`${name}: expected a function, got ${act === null ? 'null' : typeof act}`);
  }
  for (const name of BODIES) {
    const use: unknown = definition[name];
    if (use === undefined || USES.has(use)) continue;
    throw moduleError(`${name}: expected none, reads or edits, got ${JSON.stringify(use)}`);
  }
  const { requestBody = 'none', responseBody = 'none' } = definition;
  return Object.assign(Object.create(definition), { requestBody, responseBody });
}

function moduleError(message: string): WeirError {
  return new WeirError('WEIR_FILTER_MODULE', message);
}
