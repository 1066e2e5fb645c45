// The tags that are taken out of stat names by default. Names are without the `proxy.` prefix.

export interface DefaultTag {
  readonly name: string;
  /** Tried in order, the first match counts; syntax in src/stats/tags/tag-pattern.ts. */
  readonly patterns: readonly string[];
  /** A value that is no tag although the pattern fits. */
  readonly except?: string;
  /** The tag's name takes no prefix. */
  readonly isBare?: boolean;
}

/** Tags of the name's end, which no pattern of whole tokens describes. */
export const RESPONSE_CODE_TAG = 'response_code';
export const RESPONSE_CODE_CLASS_TAG = 'response_code_class';

/** Put before every tag's name that is not bare. */
export const TAG_PREFIX = 'proxy.';

export const DEFAULT_TAGS: readonly DefaultTag[] = [
  { name: 'cluster_name', patterns: ['cluster.$.**'] },
  { name: 'http_conn_manager_prefix', patterns: ['http.$.**', 'listener.*.http.$.**'] },
  { name: 'listener_address', patterns: ['listener.$.**'], except: 'admin' },
  { name: 'worker_id', patterns: ['listener.*.worker_$.**', 'listener_manager.worker_$.**', 'server.worker_$.**'] },
  { name: 'tcp_prefix', patterns: ['tcp.$.**'] },
  { name: 'udp_prefix', patterns: ['udp.$.**'] },
  { name: 'virtual_host', patterns: ['vhost.$.**'] },
  { name: 'virtual_cluster', patterns: ['vhost.*.vcluster.$.**'] },
  { name: 'route', patterns: ['vhost.*.route.$.**'] },
  { name: 'rds_route_config', patterns: ['http.*.rds.$$.*'] },
  { name: 'http_user_agent', patterns: ['http.*.user_agent.$.**'] },
  { name: 'fault_downstream_cluster', patterns: ['http.*.fault.$.**'] },
  { name: 'grpc_bridge_service', patterns: ['cluster.*.grpc.$.**'] },
  { name: 'grpc_bridge_method', patterns: ['cluster.*.grpc.*.$.**'] },
  { name: 'ssl_cipher', patterns: ['listener.*.ssl.ciphers.$', 'listener.*.ssl.cipher.$'] },
  { name: 'cipher_suite', patterns: ['cluster.*.ssl.ciphers.$'], isBare: true },
  { name: 'ssl_curve', patterns: ['listener.*.ssl.curves.$', 'cluster.*.ssl.curves.$'] },
  { name: 'ssl_sigalg', patterns: ['listener.*.ssl.sigalgs.$', 'cluster.*.ssl.sigalgs.$'] },
  // A version holds a dot: TLSv1.3.
  { name: 'ssl_version', patterns: ['listener.*.ssl.versions.$$', 'cluster.*.ssl.versions.$$'] },
  { name: 'clientssl_prefix', patterns: ['auth.clientssl.$.**'] },
  { name: 'ratelimit_prefix', patterns: ['ratelimit.$.**'] },
  { name: 'local_http_ratelimit_prefix', patterns: ['$.http_local_rate_limit.**'] },
  { name: 'local_network_ratelimit_prefix', patterns: ['local_rate_limit.$.**'] },
  { name: 'local_listener_ratelimit_prefix', patterns: ['listener_local_ratelimit.$.**'] },
  { name: 'ext_authz_prefix', patterns: ['cluster.*.ext_authz.$.**', 'http.*.ext_authz.$.**'] },
  { name: 'mongo_prefix', patterns: ['mongo.$.**'] },
  { name: 'mongo_cmd', patterns: ['mongo.*.cmd.$.**'] },
  { name: 'mongo_collection', patterns: ['mongo.*.collection.$.query.**', 'mongo.*.collection.$.callsite.*.query.**'] },
  { name: 'mongo_callsite', patterns: ['mongo.*.collection.*.callsite.$.query.**'] },
  {
    name: 'dynamo_operation',
    patterns: [
      'http.*.dynamodb.operation.$.**',
      'http.*.dynamodb.table.*.capacity.$',
      'http.*.dynamodb.table.*.capacity.$.**',
    ],
  },
  { name: 'dynamo_table', patterns: ['http.*.dynamodb.table.$.**', 'http.*.dynamodb.error.$.**'] },
  { name: 'dynamo_partition_id', patterns: ['http.*.dynamodb.table.*.capacity.*.__partition_id=$'] },
  { name: 'thrift_prefix', patterns: ['thrift.$.**'] },
  { name: 'redis_prefix', patterns: ['redis.$.**'] },
  { name: 'dns_filter_prefix', patterns: ['dns_filter.$.**'] },
];

/** Names of all default tags with their prefix. */
export const DEFAULT_TAG_NAMES: readonly string[] = [
  ...DEFAULT_TAGS.map((tag) => (tag.isBare ? tag.name : TAG_PREFIX + tag.name)),
  TAG_PREFIX + RESPONSE_CODE_TAG,
  TAG_PREFIX + RESPONSE_CODE_CLASS_TAG,
];
