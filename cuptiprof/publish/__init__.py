"""What a session that runs collects, as metrics for a monitoring system: one list of them, given to Prometheus and to OpenTelemetry."""
