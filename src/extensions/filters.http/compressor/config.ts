// Compressor and CompressorPerRoute messages → settings of the compressor filter.

import {
  type Conversion,
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  runtimeFlagOf,
  type SupportTable,
  supported,
  valueOr,
} from '../../../config/index.ts';
import type { HttpFilterSettings } from '../../../snapshot/index.ts';
import {
  COMPRESSOR_LIBRARY,
  COMPRESSOR_LIBRARY_SUPPORT,
  compressorLibraryOf,
} from '../../compression/compressor-config.ts';
import type { CompressorLibrary } from '../../compression/settings.ts';
import type {
  CompressorRouteSettings,
  CompressorSettings,
  CounterNames,
  DirectionCounter,
  DirectionSettings,
  ResponseCounter,
  ResponseSettings,
} from './settings.ts';

const COMPRESSOR = 'proxy.extensions.filters.http.compressor.v3.Compressor';
const PER_ROUTE = 'proxy.extensions.filters.http.compressor.v3.CompressorPerRoute';
const OVERRIDES = 'proxy.extensions.filters.http.compressor.v3.CompressorOverrides';
const RESPONSE_OVERRIDES = 'proxy.extensions.filters.http.compressor.v3.ResponseDirectionOverrides';

export type CompressorMessage = MessageTypes[typeof COMPRESSOR];
type PerRoute = MessageTypes[typeof PER_ROUTE];
type Common = NonNullable<MessageTypes[`${typeof COMPRESSOR}.CommonDirectionConfig`]>;
/** Of a response's settings, all but what both directions have. */
type ResponseOnly = Omit<ResponseSettings, keyof DirectionSettings>;

const DEFAULT_MIN_LENGTH = 30;
const DIRECTION_COUNTERS: readonly DirectionCounter[] = [
  'compressed',
  'not_compressed',
  'total_uncompressed_bytes',
  'total_compressed_bytes',
  'content_length_too_small',
];
const RESPONSE_COUNTERS: readonly ResponseCounter[] = [
  ...DIRECTION_COUNTERS,
  'no_accept_header',
  'header_identity',
  'header_compressor_used',
  'header_compressor_overshadowed',
  'header_wildcard',
  'header_not_valid',
  'not_compressed_etag',
];
/** Those that Envoy takes, with their older names. */
const DEFAULT_TYPES = [
  ...['html', 'plain', 'css', 'xml', 'javascript', 'x-javascript', 'ecmascript', 'js', 'jscript', 'x-js'].map(
    (name) => `text/${name}`,
  ),
  ...['javascript', 'x-javascript', 'ecmascript', 'json', 'x-json', 'xml', 'xhtml+xml'].map(
    (name) => `application/${name}`,
  ),
  'image/svg+xml',
];
const OLDER = 'unless response_direction_config says it';

const COMPRESSOR_SUPPORT: SupportTable = {
  [COMPRESSOR]: {
    otherwise: rejected(),
    fields: {
      content_length: supported(OLDER),
      content_type: supported(OLDER),
      disable_on_etag_header: supported(OLDER),
      remove_accept_encoding_header: supported(OLDER),
      runtime_enabled: supported(OLDER),
      compressor_library: COMPRESSOR_LIBRARY,
      request_direction_config: supported(),
      response_direction_config: supported('replies of the proxy itself are never compressed'),
      choose_first: supported(),
    },
  },
  [`${COMPRESSOR}.CommonDirectionConfig`]: {
    otherwise: rejected(),
    fields: { enabled: supported(), min_content_length: supported(), content_type: supported() },
  },
  [`${COMPRESSOR}.RequestDirectionConfig`]: { otherwise: rejected(), fields: { common_config: supported() } },
  [`${COMPRESSOR}.ResponseDirectionConfig`]: {
    otherwise: rejected(),
    fields: {
      common_config: supported(),
      disable_on_etag_header: supported(),
      remove_accept_encoding_header: supported(),
      uncompressible_response_codes: supported('206 is never compressed'),
      status_header_enabled: supported(),
      weaken_etag_on_compress: supported(),
    },
  },
  ...COMPRESSOR_LIBRARY_SUPPORT,
};

export const COMPRESSOR_MANIFEST: HttpFilterManifest = {
  support: {
    ...COMPRESSOR_SUPPORT,
    [PER_ROUTE]: { otherwise: rejected(), fields: { disabled: supported(), overrides: supported() } },
    [OVERRIDES]: {
      otherwise: rejected(),
      fields: { response_direction_config: supported(), compressor_library: COMPRESSOR_LIBRARY },
    },
    [RESPONSE_OVERRIDES]: { otherwise: rejected(), fields: { remove_accept_encoding_header: supported() } },
  },
  convert(message, at, conversion) {
    const compressor = message as CompressorMessage;
    const extension = compressor.compressor_library;
    if (extension === null) {
      conversion.faults.error(`${at}.compressor_library`, 'is required');
      return undefined;
    }
    const library = compressorLibraryOf(extension, `${at}.compressor_library`, conversion);
    if (library === undefined) return undefined;
    return compressorFilter(compressor, library, `compressor.${extension.name}.${library.kind}.`);
  },
  ofRoutes: {
    type: PER_ROUTE,
    convert: (message, at, conversion) => routeSettingsOf(message as PerRoute, at, conversion),
  },
};

/** @param statPrefix with its final dot. @param olderUsedCounter as in CompressorSettings. */
export function compressorFilter(
  compressor: Omit<CompressorMessage, 'compressor_library'>,
  library: CompressorLibrary,
  statPrefix: string,
  olderUsedCounter = '',
): HttpFilterSettings {
  const { request_direction_config: ofRequests } = compressor;
  const request = ofRequests && directionOf(ofRequests.common_config, `${statPrefix}request.`, DIRECTION_COUNTERS);
  const response = responseOf(compressor, statPrefix);
  const settings: CompressorSettings = {
    library,
    isChosenFirst: compressor.choose_first,
    request,
    response,
    olderUsedCounter,
  };
  const counters = [...Object.values(response.counters), ...Object.values(request?.counters ?? {})];
  if (olderUsedCounter !== '') counters.push(olderUsedCounter);
  return { name: 'filters.http.compressor', settings, counters };
}

function responseOf(compressor: Omit<CompressorMessage, 'compressor_library'>, statPrefix: string): ResponseSettings {
  const { response_direction_config: response } = compressor;
  if (response !== null) {
    const only: ResponseOnly = {
      disablesOnEtag: response.disable_on_etag_header,
      weakensEtag: response.weaken_etag_on_compress,
      removesAcceptEncoding: response.remove_accept_encoding_header,
      exemptStatuses: response.uncompressible_response_codes,
      hasStatusHeader: response.status_header_enabled,
    };
    return { ...directionOf(response.common_config, `${statPrefix}response.`, RESPONSE_COUNTERS), ...only };
  }
  const older: Common = {
    enabled: compressor.runtime_enabled,
    min_content_length: compressor.content_length,
    content_type: compressor.content_type,
  };
  const only: ResponseOnly = {
    disablesOnEtag: compressor.disable_on_etag_header,
    weakensEtag: false,
    removesAcceptEncoding: compressor.remove_accept_encoding_header,
    exemptStatuses: [],
    hasStatusHeader: false,
  };
  return { ...directionOf(older, statPrefix, RESPONSE_COUNTERS), ...only };
}

/** @param statPrefix with its final dot. */
function directionOf<Counted extends string>(
  common: Common | null,
  statPrefix: string,
  counted: readonly Counted[],
): DirectionSettings<Counted> {
  const types = common?.content_type ?? [];
  const counters = counted.map((name) => [name, statPrefix + name]);
  return {
    enabled: runtimeFlagOf(common?.enabled ?? null, true),
    minLength: valueOr(common?.min_content_length, DEFAULT_MIN_LENGTH),
    contentTypes: types.length === 0 ? DEFAULT_TYPES : types.map((type) => type.toLowerCase()),
    counters: Object.fromEntries(counters) as CounterNames<Counted>,
  };
}

function routeSettingsOf(
  { overrides }: PerRoute,
  at: string,
  conversion: Conversion,
): CompressorRouteSettings | 'off' | undefined {
  if (overrides === null) return 'off';
  const { response_direction_config: response, compressor_library: extension } = overrides;
  const here = `${at}.overrides.compressor_library`;
  const library = extension === null ? undefined : compressorLibraryOf(extension, here, conversion);
  if (extension !== null && library === undefined) return undefined;
  return {
    library,
    enablesResponses: response !== null,
    removesAcceptEncoding: response?.remove_accept_encoding_header?.value,
  };
}
