// Notes on who may be chosen: health checks and outlier detection.

import type { MessageNotes } from './note.ts';
import {
  CHECK_EVENTS,
  CHECK_SETTINGS,
  CHECK_STATE,
  CHECKER,
  OUTLIER_ROWS,
  OUTLIERS,
  PROBES,
  REDIS,
  SECURED_PROBES,
  TCP_PROBE,
} from './tests.ts';

export const HEALTH_NOTES: Readonly<Record<string, MessageNotes>> = {
  'proxy.config.cluster.v3.OutlierDetection': {
    about: `What detects, and which field says how many of its detections eject; the others are counted and logged. Each number may be
overridden by the runtime value \`outlier_detection.<field>\`, in milliseconds where it is a time (\`outlier_detection.interval_ms\`).`,
    test: OUTLIERS,
    fields: {
      consecutive_5xx: ['Answers of 5xx in a row, over all workers; 0 for any number.', '5', OUTLIER_ROWS],
      interval: ['Between two comparisons of all hosts; ejections end with one.', '10 s'],
      base_ejection_time: ['Times the number of ejections that count, how long one lasts.', '30 s'],
      max_ejection_time: ['How long one lasts at most.', '300 s, or base_ejection_time'],
      max_ejection_time_jitter: ['A random part of it is added.', 'none'],
      max_ejection_percent: ['Of the hosts that may be out of service.', '10'],
      always_eject_one_host: ['One host may go whatever the percentage.', '`true`, unless max_ejection_percent is 0'],
      successful_active_health_check_uneject_host: ['A passed health check ends an ejection.', '`true`'],
      split_external_local_origin_errors: [
        'Connections are judged apart from answers, instead of as answers of 503 and 504.',
        '`false`',
        OUTLIER_ROWS,
      ],
      consecutive_gateway_failure: ['Answers of 502, 503 and 504 in a row.', '5', OUTLIER_ROWS],
      consecutive_local_origin_failure: [
        'Connections that fail in a row, where they are judged apart.',
        '5',
        OUTLIER_ROWS,
      ],
      success_rate_minimum_hosts: ['Hosts with enough requests that it takes to compare them.', '5'],
      success_rate_request_volume: ['Requests within an interval that are enough.', '100'],
      success_rate_stdev_factor: ['Thousandths of a standard deviation that a host may be below the average.', '1900'],
      failure_percentage_threshold: ['Percent of failures from which on a host is an outlier.', '85'],
      failure_percentage_minimum_hosts: [
        'Hosts with enough requests that it takes to look for failures by percent.',
        '5',
      ],
      failure_percentage_request_volume: ['Requests of a host within an interval that are enough for that.', '50'],
      enforcing_consecutive_5xx: ['Percent of the detections by `consecutive_5xx` that eject.', '100'],
      enforcing_consecutive_gateway_failure: [
        'Percent of the detections by `consecutive_gateway_failure` that eject.',
        '0',
      ],
      enforcing_consecutive_local_origin_failure: [
        'Percent of the detections by `consecutive_local_origin_failure` that eject.',
        '100',
      ],
      enforcing_success_rate: ['Percent of the detections by success rate that eject.', '100'],
      enforcing_local_origin_success_rate: [
        'Percent of the detections by the success rate of connections that eject, where they are judged apart.',
        '100',
      ],
      enforcing_failure_percentage: ['Percent of the detections by `failure_percentage_threshold` that eject.', '0'],
      enforcing_failure_percentage_local_origin: [
        'Percent of the detections by the failures of connections that eject, where they are judged apart.',
        '0',
      ],
    },
  },
  'proxy.config.core.v3.HealthCheck': {
    about: `A new host is unhealthy until its first check has passed, which makes it healthy at once. What a check does not expect of an answer
makes the host unhealthy at once; a connection that fails, an answer that does not end in time, or that is longer than 4 MiB, counts
toward \`unhealthy_threshold\`. An answer by HTTP counts when it has ended. What the last check of each host has said is shown by
\`/clusters\` and on the page.

Over TLS, 16 handshakes of checks go on at a time, of all clusters together, each for 50 ms at most; further ones wait, counted by
\`health_check.handshake_queued\`, and the timeouts of their checks stand still meanwhile.`,
    test: CHECKER,
    fields: {
      timeout: ['How long a check may take.', 'required'],
      interval: ['Between the checks of a host.', 'required'],
      interval_jitter: ['A random part of it is added to every interval.', 'none', CHECK_STATE],
      interval_jitter_percent: ['Percent of the interval of which a random part is added, too.', '0', CHECK_STATE],
      initial_jitter: ['A random part of it comes before the first check.', 'none'],
      unhealthy_threshold: ['Failed checks in a row after which a host is unhealthy.', 'required', CHECK_STATE],
      healthy_threshold: [
        'Checks in a row with which it is healthy again; the first check counts at once.',
        'required',
        CHECK_STATE,
      ],
      alt_port: ['The port of checks.', 'that of the host'],
      reuse_connection: ['Checks of a host share a connection.', '`true`', PROBES],
      http_health_check: ['By a request and its answer.', 'none', PROBES],
      grpc_health_check: ['By a call of the health service of gRPC.', 'none', SECURED_PROBES],
      custom_health_check: ['By `envoy.health_checkers.redis`.', 'none', REDIS],
      tls_options: ['What checks offer in TLS.', 'as the transport socket says', SECURED_PROBES],
      transport_socket_match_criteria: [
        'Chooses among `transport_socket_matches` for checks.',
        'the metadata of each host',
        SECURED_PROBES,
      ],
      tcp_health_check: ['By a connection and what comes over it.', 'none', TCP_PROBE],
      no_traffic_interval: ['Between checks until the cluster has had its first connection.', '60 s', CHECK_STATE],
      no_traffic_healthy_interval: [
        'Between checks of a healthy host until the cluster has had its first connection.',
        '`no_traffic_interval`',
        CHECK_STATE,
      ],
      unhealthy_interval: ['Between checks of an unhealthy host.', '`interval`', CHECK_STATE],
      unhealthy_edge_interval: ['After the check that has made a host unhealthy.', '`unhealthy_interval`', CHECK_STATE],
      healthy_edge_interval: ['After the check that has made it healthy.', '`interval`', CHECK_STATE],
      event_log_path: ['A file that gets a line for each event.', 'none', CHECK_EVENTS],
      event_logger: ['The newer form of `event_log_path`: sinks for events.', 'none', CHECK_EVENTS],
      always_log_health_check_failures: ['Every failure is an event.', '`false`', CHECK_EVENTS],
      always_log_health_check_success: ['Every success is an event.', '`false`', CHECK_EVENTS],
    },
  },
  'proxy.config.core.v3.HealthCheck.TlsOptions': {
    test: SECURED_PROBES,
    fields: { alpn_protocols: ['Offered by ALPN.', 'those of the transport socket, or what the check speaks'] },
  },
  'proxy.config.core.v3.HealthCheck.CustomHealthCheck': {
    test: REDIS,
    fields: {
      name: ['`envoy.health_checkers.redis`.', 'required'],
      config: ['The older form of typed_config.', 'none'],
      typed_config: ['A checker.', 'required'],
    },
  },
  'proxy.extensions.health_checkers.redis.v3.Redis': {
    about: 'Of servers of Redis, to which checks say the password of the cluster first.',
    test: REDIS,
    fields: { key: ['A host that has this key is not well.', 'a host is well that answers a PING'] },
  },
  'proxy.config.core.v3.HealthCheck.GrpcHealthCheck': {
    about: `Over HTTP/2, which the cluster has to speak. Only status 0 with SERVING is well. Everything else that a host answers makes it unhealthy at
once.`,
    test: SECURED_PROBES,
    fields: {
      service_name: ['The service that is asked after.', 'the server as a whole'],
      authority: ['The authority; `hostname` of an endpoint goes before it.', 'the name of the cluster'],
      initial_metadata: ['Fields of the request.', 'none'],
    },
  },
  'proxy.config.core.v3.HealthCheck.HttpHealthCheck': {
    test: PROBES,
    fields: {
      host: ['The Host header; `hostname` of an endpoint goes before it.', 'the name of the cluster'],
      path: ['The target.', 'required'],
      send: ['The body, with methods that have one.', 'none'],
      receive: ['What the body of the answer must hold, in this order, with anything between.', 'nothing'],
      response_buffer_size: ['Bytes of the body in which `receive` is looked for, up to 1 MiB; 0 for that.', '1024'],
      service_name: ['The service that must answer, by the beginning of its name.', 'any'],
      service_name_matcher: [
        'The service that must answer, as its `x-proxy-upstream-healthchecked-cluster` says, by any match.',
        'any',
      ],
      request_headers_to_add: ['Headers of the request.', 'none'],
      request_headers_to_remove: ['Headers that it goes without.', 'none'],
      expected_statuses: ['Ranges of statuses that pass; their ends are outside.', '200 alone'],
      retriable_statuses: ['Statuses that count toward the threshold instead of failing the host at once.', 'none'],
      codec_client_type: ['The protocol of checks.', '`HTTP1`', CHECK_SETTINGS],
      use_http2: ['The older form of `codec_client_type: HTTP2`.', '`false`', CHECK_SETTINGS],
      method: ['The method of the request; not `CONNECT`.', '`GET`'],
    },
  },
  'proxy.config.core.v3.HealthCheck.TcpHealthCheck': {
    test: TCP_PROBE,
    fields: {
      send: ['What is sent.', 'nothing'],
      receive: [
        'What must come back, in this order, with anything between.',
        'nothing: a connection is enough, and nothing is sent',
      ],
    },
  },
  'proxy.config.core.v3.HealthCheck.Payload': {
    test: CHECK_SETTINGS,
    fields: {
      text: ['Bytes in hexadecimal: `000000FF`.', 'none'],
      binary: ['Bytes, in JSON and YAML as base64.', 'none'],
    },
  },
  'proxy.type.v3.Int64Range': {
    test: CHECK_SETTINGS,
    fields: { start: ['The first that is within.', '0'], end: ['The first that is not.', '0'] },
  },
  'proxy.config.core.v3.TypedExtensionConfig (health check event sink)': {
    test: CHECK_SETTINGS,
    fields: { name: ['For people alone.', 'required'], typed_config: ['`HealthCheckEventFileSink`.', 'required'] },
  },
  'proxy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink': {
    test: CHECK_EVENTS,
    fields: { event_log_path: ['The file.', 'required'] },
  },
};
