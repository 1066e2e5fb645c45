// What the grpc_json_transcoder filter and its configuration share.

import type { PathTemplate } from './path-template.ts';

export interface TranscodedMethod {
  /** `/package.Service/Method`. */
  readonly path: string;
  /** Full names. */
  readonly requestType: string;
  readonly responseType: string;
  readonly isClientStreaming: boolean;
  readonly isServerStreaming: boolean;
}

/** One way in which HTTP reaches a method. */
export interface MethodBinding {
  readonly method: TranscodedMethod;
  /** Of HTTP. */
  readonly verb: string;
  readonly template: PathTemplate;
  /** Names of fields from the request inwards that the body is; empty for the request itself, null for no body. */
  readonly body: readonly string[] | null;
  /** The same of the response. */
  readonly responseBody: readonly string[];
}

export interface PrintSettings {
  readonly indents: boolean;
  readonly printsDefaults: boolean;
  readonly printsEnumNumbers: boolean;
  readonly keepsNames: boolean;
  readonly streams: 'array' | 'lines' | 'events';
}

export interface TranscoderSettings {
  /** A FileDescriptorSet. */
  readonly descriptor: Uint8Array;
  /** What is more exact comes first. */
  readonly bindings: readonly MethodBinding[];
  readonly print: PrintSettings;
  readonly keepsRoute: boolean;
  readonly ignoredParameters: readonly string[];
  readonly ignoresUnknownParameters: boolean;
  readonly convertsStatus: boolean;
  /** Escapes that stay in fields of several segments. */
  readonly keptEscapes: 'reserved' | 'slash' | 'none';
  readonly plusIsSpace: boolean;
  readonly refusesUnknownMethods: boolean;
  readonly refusesUnknownParameters: boolean;
  readonly refusesCollisions: boolean;
  /** What stands behind the last colon of a path is a verb, also one that no method has. */
  readonly takesAnyVerb: boolean;
  /** Values of enums are found whatever case they are written in. */
  readonly ignoresEnumCase: boolean;
  /** 0 for the buffer limit. */
  readonly maxRequestBytes: number;
  readonly maxResponseBytes: number;
}
