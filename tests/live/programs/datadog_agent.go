// The receiver of Datadog's own trace-agent, which passes profiles on to an intake of ours:
//
//	datadog_agent PORT SOCKET INTAKE_URL KEY
//
// tests/live/real_datadog.py tells how it is built.
package main

import (
	"os"
	"strconv"

	"github.com/DataDog/datadog-agent/pkg/trace/api"
	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/datadog-agent/pkg/trace/sampler"
	"github.com/DataDog/datadog-agent/pkg/trace/telemetry"
	"github.com/DataDog/datadog-agent/pkg/trace/timing"
	"github.com/DataDog/datadog-go/v5/statsd"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	conf := config.New()
	conf.ReceiverHost, conf.ReceiverPort, conf.ReceiverSocket = "127.0.0.1", port, os.Args[2]
	conf.ProfilingProxy.DDURL = os.Args[3]
	conf.Endpoints[0].APIKey = os.Args[4]
	conf.Hostname, conf.AgentVersion, conf.MaxConnections = "agent-host", "7.0.0", 100
	receiver := api.NewHTTPReceiver(conf, sampler.NewDynamicConfig(), make(chan *api.Payload, 1), make(chan *api.PayloadV1, 1),
		nil, telemetry.NewNoopCollector(), &statsd.NoOpClient{}, timing.NoopReporter{})
	receiver.BuildHandlers()
	receiver.Start()
	select {}
}
