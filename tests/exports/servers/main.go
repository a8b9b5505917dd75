// Takes what jdperf watch pushes with the servers' own code: Pyroscope's generated Connect handler, and the collector's
// reader of OTLP profiles. Prints its port; each profile becomes DIR/PROTOCOL-N.json, as those of push_server.py.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"connectrpc.com/connect"
	"github.com/google/pprof/profile"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
)

type told struct {
	Labels  map[string]string `json:"labels"`
	Samples int64             `json:"samples"`
	All     map[string]int64  `json:"all"`
	Inlined int               `json:"inlined"`
}

var (
	lock    sync.Mutex
	numbers = map[string]int{}
)

func keep(protocol string, t told) {
	lock.Lock()
	defer lock.Unlock()
	numbers[protocol]++
	path := fmt.Sprintf("%s/%s-%d.json", os.Args[1], protocol, numbers[protocol])
	text, _ := json.Marshal(t)
	if err := os.WriteFile(path+".part", text, 0o600); err == nil {
		_ = os.Rename(path+".part", path)
	}
}

// A stack's functions, each once.
func count(t *told, stack map[string]bool, samples int64) {
	t.Samples += samples
	for name := range stack {
		t.All[name] += samples
	}
}

type pusher struct {
	pushv1connect.UnimplementedPusherServiceHandler
}

func (pusher) Push(_ context.Context, r *connect.Request[pushv1.PushRequest]) (*connect.Response[pushv1.PushResponse], error) {
	for _, series := range r.Msg.Series {
		for _, sample := range series.Samples {
			p, err := profile.ParseData(sample.RawProfile) // checks it as go tool pprof does
			if err != nil {
				return nil, connect.NewError(connect.CodeInvalidArgument, err)
			}
			t := told{Labels: map[string]string{}, All: map[string]int64{}}
			for _, label := range series.Labels {
				t.Labels[label.Name] = label.Value
			}
			for _, location := range p.Location {
				if len(location.Line) > 1 {
					t.Inlined++
				}
			}
			for _, s := range p.Sample {
				stack := map[string]bool{}
				for _, location := range s.Location {
					for _, line := range location.Line {
						stack[line.Function.Name] = true
					}
				}
				count(&t, stack, s.Value[0])
			}
			keep("pyroscope", t)
		}
	}
	return connect.NewResponse(&pushv1.PushResponse{}), nil
}

func takeSamples(t *told, dictionary pprofile.ProfilesDictionary, samples pprofile.SampleSlice) {
	text := func(i int32) string { return dictionary.StringTable().At(int(i)) }
	for i := 0; i < samples.Len(); i++ {
		sample := samples.At(i)
		stack := map[string]bool{}
		for _, at := range dictionary.StackTable().At(int(sample.StackIndex())).LocationIndices().AsRaw() {
			lines := dictionary.LocationTable().At(int(at)).Lines()
			for k := 0; k < lines.Len(); k++ {
				stack[text(dictionary.FunctionTable().At(int(lines.At(k).FunctionIndex())).NameStrindex())] = true
			}
		}
		count(t, stack, int64(sample.TimestampsUnixNano().Len()))
	}
}

func takeOTLP(w http.ResponseWriter, r *http.Request) {
	unpacked, err := gzip.NewReader(r.Body)
	var body []byte
	if err == nil {
		body, err = io.ReadAll(unpacked)
	}
	request := pprofileotlp.NewExportRequest()
	if err == nil {
		err = request.UnmarshalProto(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	profiles := request.Profiles()
	dictionary := profiles.Dictionary()
	for i := 0; i < profiles.ResourceProfiles().Len(); i++ {
		resource := profiles.ResourceProfiles().At(i)
		t := told{Labels: map[string]string{}, All: map[string]int64{}}
		for name, value := range resource.Resource().Attributes().All() {
			t.Labels[name] = value.AsString()
		}
		for k := 0; k < dictionary.LocationTable().Len(); k++ {
			if dictionary.LocationTable().At(k).Lines().Len() > 1 {
				t.Inlined++
			}
		}
		for k := 0; k < resource.ScopeProfiles().Len(); k++ {
			list := resource.ScopeProfiles().At(k).Profiles()
			for j := 0; j < list.Len(); j++ {
				takeSamples(&t, dictionary, list.At(j).Samples())
			}
		}
		keep("otlp", t)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	answer, _ := pprofileotlp.NewExportResponse().MarshalProto()
	_, _ = io.Copy(w, bytes.NewReader(answer))
}

func main() {
	path, handler := pushv1connect.NewPusherServiceHandler(pusher{})
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	mux.HandleFunc("/v1development/profiles", takeOTLP)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().String()[strings.LastIndex(listener.Addr().String(), ":")+1:])
	away := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(os.Args[1] + "/down"); err == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	})
	panic(http.Serve(listener, away))
}
