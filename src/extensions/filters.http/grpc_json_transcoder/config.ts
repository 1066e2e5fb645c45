// GrpcJsonTranscoder message → settings of the filter, by the definitions of the services that it names.

import { errorMessage } from '../../../base/errors.ts';
import { readWholeFile } from '../../../base/file-bytes.ts';
import {
  type Conversion,
  type HttpFilterManifest,
  type MessageTypes,
  only,
  rejected,
  supported,
} from '../../../config/index.ts';
import {
  type DescriptorSet,
  type HttpRule,
  type MethodDescriptor,
  readDescriptorSet,
} from './descriptor-set-config.ts';
import type { PathTemplate } from './path-template.ts';
import { compareTemplates, parseTemplate } from './path-template-config.ts';
import type { MethodBinding, PrintSettings, TranscodedMethod, TranscoderSettings } from './settings.ts';

const TRANSCODER = 'proxy.extensions.filters.http.grpc_json_transcoder.v3.GrpcJsonTranscoder';
/** By their numbers. */
const KEPT_ESCAPES = ['reserved', 'slash', 'none'] as const;
const VERBS = ['get', 'put', 'post', 'delete', 'patch'] as const;
const WHOLE_BODY = '*';
/** Many times the definitions of a large company. */
const MAX_DESCRIPTOR_BYTES = 64 * 1024 * 1024;

type Message = MessageTypes[typeof TRANSCODER];

export const GRPC_JSON_TRANSCODER: HttpFilterManifest = {
  support: {
    [TRANSCODER]: {
      otherwise: rejected(),
      fields: {
        proto_descriptor: supported('the file is read at the start'),
        proto_descriptor_bin: supported(),
        services: supported(),
        print_options: supported(),
        match_incoming_request_route: supported(),
        ignored_query_parameters: supported(),
        auto_mapping: supported(),
        ignore_unknown_query_parameters: supported(),
        convert_grpc_status: supported(),
        url_unescape_spec: supported(),
        request_validation_options: supported(),
        query_param_unescape_plus: supported(),
        match_unregistered_custom_verb: supported(),
        case_insensitive_enum_parsing: supported('a dash is an underscore'),
        max_request_body_size: supported(),
        max_response_body_size: supported(),
        capture_unknown_query_parameters: only([false], 'services get what their definitions name'),
      },
    },
    [`${TRANSCODER}.PrintOptions`]: {
      otherwise: rejected(),
      fields: {
        add_whitespace: supported(),
        always_print_primitive_fields: supported(),
        always_print_enums_as_ints: supported(),
        preserve_proto_field_names: supported(),
        stream_newline_delimited: supported(),
        stream_sse_style_delimited: supported(),
      },
    },
    [`${TRANSCODER}.RequestValidationOptions`]: {
      otherwise: rejected(),
      fields: {
        reject_unknown_method: supported(),
        reject_unknown_query_parameters: supported(),
        reject_binding_body_field_collisions: supported(),
      },
    },
  },
  convert(message, at, conversion) {
    const settings = convertTranscoder(message as Message, at, conversion);
    return settings && { name: 'filters.http.grpc_json_transcoder', settings };
  },
  ofRoutes: {
    type: TRANSCODER,
    convert: (message, at, conversion) =>
      (message as Message).services.length === 0 ? 'off' : convertTranscoder(message as Message, at, conversion),
  },
};

function convertTranscoder(message: Message, at: string, conversion: Conversion): TranscoderSettings | undefined {
  const descriptor = bytesOf(message, at, conversion);
  const set = descriptor && read(descriptor, `${at}.${fieldOf(message)}`, conversion);
  if (set === undefined) return undefined;
  const validation = message.request_validation_options;
  return {
    descriptor: descriptor!,
    bindings: bindingsOf(message, set, at, conversion),
    print: convertPrint(message.print_options),
    keepsRoute: message.match_incoming_request_route,
    ignoredParameters: message.ignored_query_parameters,
    ignoresUnknownParameters: message.ignore_unknown_query_parameters,
    convertsStatus: message.convert_grpc_status,
    keptEscapes: KEPT_ESCAPES[message.url_unescape_spec] ?? 'reserved',
    plusIsSpace: message.query_param_unescape_plus,
    refusesUnknownMethods: validation?.reject_unknown_method ?? false,
    refusesUnknownParameters: validation?.reject_unknown_query_parameters ?? false,
    refusesCollisions: validation?.reject_binding_body_field_collisions ?? false,
    takesAnyVerb: message.match_unregistered_custom_verb,
    ignoresEnumCase: message.case_insensitive_enum_parsing,
    maxRequestBytes: message.max_request_body_size?.value ?? 0,
    maxResponseBytes: message.max_response_body_size?.value ?? 0,
  };
}

function fieldOf({ proto_descriptor: file }: Message): string {
  return file === '' ? 'proto_descriptor_bin' : 'proto_descriptor';
}

function bytesOf(message: Message, at: string, { faults }: Conversion): Uint8Array | undefined {
  const { proto_descriptor: file, proto_descriptor_bin: bytes } = message;
  if (file !== '' && bytes.length > 0) {
    faults.error(`${at}.proto_descriptor_bin`, 'cannot be given together with proto_descriptor');
  }
  if (file === '' && bytes.length === 0) faults.error(at, 'needs proto_descriptor or proto_descriptor_bin');
  if (file === '') return bytes.length === 0 ? undefined : Uint8Array.from(bytes);
  const { bytes: read, problem, error } = readWholeFile(file, MAX_DESCRIPTOR_BYTES);
  if (read !== undefined) return Uint8Array.from(read);
  faults.error(`${at}.proto_descriptor`, `"${file}" ${problem ?? `cannot be read: ${errorMessage(error)}`}`);
  return undefined;
}

function read(bytes: Uint8Array, at: string, { faults }: Conversion): DescriptorSet | undefined {
  try {
    return readDescriptorSet(bytes);
  } catch (error) {
    faults.error(at, `is no whole FileDescriptorSet: ${errorMessage(error)}; protoc writes one with --include_imports`);
    return undefined;
  }
}

function convertPrint(options: Message['print_options']): PrintSettings {
  const isEvents = options?.stream_sse_style_delimited ?? false;
  const isLines = options?.stream_newline_delimited ?? false;
  return {
    indents: options?.add_whitespace ?? false,
    printsDefaults: options?.always_print_primitive_fields ?? false,
    printsEnumNumbers: options?.always_print_enums_as_ints ?? false,
    keepsNames: options?.preserve_proto_field_names ?? false,
    streams: isEvents ? 'events' : isLines ? 'lines' : 'array',
  };
}

function bindingsOf(
  message: Message,
  set: DescriptorSet,
  at: string,
  { faults }: Conversion,
): readonly MethodBinding[] {
  const bindings: MethodBinding[] = [];
  if (message.services.length === 0) faults.error(`${at}.services`, 'needs at least one entry');
  for (const [index, name] of message.services.entries()) {
    const methods = set.services.get(name);
    if (methods === undefined) {
      faults.error(`${at}.services[${index}]`, `service "${name}" is not in the ${fieldOf(message)}`);
      continue;
    }
    const report = (text: string): void => faults.error(`${at}.services[${index}]`, text);
    for (const method of methods) bindings.push(...bindingsOfMethod(name, method, set, message.auto_mapping, report));
  }
  return bindings.toSorted((a, b) => compareTemplates(a.template, b.template));
}

function bindingsOfMethod(
  service: string,
  descriptor: MethodDescriptor,
  set: DescriptorSet,
  mapsAll: boolean,
  report: (text: string) => void,
): readonly MethodBinding[] {
  const method: TranscodedMethod = {
    path: `/${service}/${descriptor.name}`,
    requestType: descriptor.inputType,
    responseType: descriptor.outputType,
    isClientStreaming: descriptor.clientStreaming,
    isServerStreaming: descriptor.serverStreaming,
  };
  const rule = descriptor.options?.http ?? (mapsAll ? automatic(method) : null);
  if (rule === null) return [];
  return [rule, ...rule.additionalBindings].flatMap((own) => {
    const binding = bindingOf(method, own);
    if (typeof binding === 'string') {
      report(`google.api.http of ${descriptor.name}: ${binding}`);
      return [];
    }
    const fields = [...binding.template.variables.map(({ field }) => field), binding.body ?? []];
    for (const field of fields) {
      if (!set.hasField(method.requestType, field)) report(`${descriptor.name} has no field ${field.join('.')}`);
    }
    if (!set.hasField(method.responseType, binding.responseBody)) {
      report(`the response of ${descriptor.name} has no field ${binding.responseBody.join('.')}`);
    }
    return [binding];
  });
}

function automatic(method: TranscodedMethod): HttpRule {
  return { post: method.path, body: WHOLE_BODY, responseBody: '', additionalBindings: [] };
}

/** @returns what is wrong with it as text. */
function bindingOf(method: TranscodedMethod, rule: HttpRule): MethodBinding | string {
  const { custom } = rule;
  const name = VERBS.find((verb) => (rule[verb] ?? '') !== '');
  const verb = name?.toUpperCase() ?? custom?.kind ?? '';
  const path = name === undefined ? (custom?.path ?? '') : rule[name]!;
  if (verb === '') return 'names no method of HTTP';
  const template: PathTemplate | string = parseTemplate(path);
  if (typeof template === 'string') return `"${path}": ${template}`;
  return { method, verb, template, body: bodyOf(rule.body), responseBody: pathOf(rule.responseBody) };
}

function bodyOf(body: string): readonly string[] | null {
  if (body === '') return null;
  return body === WHOLE_BODY ? [] : pathOf(body);
}

function pathOf(field: string): readonly string[] {
  return field === '' ? [] : field.split('.');
}
