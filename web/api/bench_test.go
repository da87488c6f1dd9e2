package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/web/api"
	"dropbell/web/api/drops"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// instant is a store that accepts everything at once, so that the benchmark measures only the path
// to the store.
type instant struct{ reminder.Store }

func (instant) Reserve(_ context.Context, c reminder.Change) (reminder.Decision, error) {
	return reminder.Decision{Applied: true, Created: true, After: c.Bits}, nil
}

type oneTemplate struct{ only template.Template }

func (o oneTemplate) Template(context.Context, int64) (template.Template, error) { return o.only, nil }

const benchBody = `{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10},{"channel":"email","minutes":5}]}`

// bare handles the same request with chi and encoding/json alone: read, check, answer.
func bare(templates reminder.Templates, store reminder.Store) http.Handler {
	r := chi.NewMux()
	r.Post("/api/v1/reservations", func(w http.ResponseWriter, q *http.Request) {
		var in struct {
			TemplateID string `json:"template_id"`
			ShopNumber string `json:"shop_number"`
			Reminders  []struct {
				Channel string `json:"channel"`
				Minutes int    `json:"minutes"`
			} `json:"reminders"`
		}
		if json.NewDecoder(q.Body).Decode(&in) != nil || len(in.Reminders) == 0 {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		id, _ := strconv.ParseInt(in.TemplateID, 10, 64)
		t, _ := templates.Template(q.Context(), id)
		v, _ := store.Reserve(q.Context(), reminder.Change{TemplateID: id, UserID: 7})
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(drops.Reservation{TemplateID: in.TemplateID, ShopNumber: in.ShopNumber, TemplateName: t.Name,
			OpensAt: t.OpensAt, Slots: v.After.String(), Reminders: []drops.ReminderState{
				{Channel: in.Reminders[0].Channel, Minutes: in.Reminders[0].Minutes, DueAt: t.OpensAt, State: "waiting"},
				{Channel: in.Reminders[1].Channel, Minutes: in.Reminders[1].Minutes, DueAt: t.OpensAt, State: "waiting"}}})
	})
	return r
}

// full is the whole of the server in front of a store that answers at once.
func full(b testing.TB, templates reminder.Templates, store reminder.Store) http.Handler {
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	tokens, err := pipeline.NewTokens(context.Background(), pipeline.TokenOptions{Secret: secret, Now: now, Log: log})
	if err != nil {
		b.Fatal(err)
	}
	channels := delivery.ChannelSetOf(delivery.App, delivery.Email)
	a := api.New(api.Deps{Deps: pipeline.Deps{Tokens: tokens, Now: now, Log: log, UserLimit: 1 << 30},
		Drops: drops.Deps{Reminders: &reminder.Service{Store: store, Templates: templates, Channels: channels, Now: now}, Channels: channels}})
	root := chi.NewMux()
	root.Use(middleware.Requests(middleware.Options{Log: log, Metrics: middleware.NewMetrics(prometheus.NewRegistry())}))
	root.Mount("/api/v1", a)
	return root
}

// BenchmarkReserveOverhead compares bare with the whole API, in memory and over loopback
// connections, as a server has them: run with -cpu 2.
func BenchmarkReserveOverhead(b *testing.B) {
	opens := now().Add(2 * time.Hour).Truncate(time.Second)
	templates := oneTemplate{template.Template{ID: 1, Stored: template.Published, Spec: template.Spec{ShopNumber: 10, Name: "20 off",
		OpensAt: opens, ClosesAt: opens.Add(time.Hour), Stock: 100}}}
	for name, h := range map[string]http.Handler{"bare": bare(templates, instant{}), "full": full(b, templates, instant{})} {
		b.Run(name+"/memory", func(b *testing.B) { inMemory(b, h) })
		b.Run(name+"/loopback", func(b *testing.B) { overLoopback(b, h) })
	}
}

func inMemory(b *testing.B, h http.Handler) {
	who := as(token(7), "Content-Type", "application/json")
	b.ReportAllocs()
	for b.Loop() {
		q := httptest.NewRequest("POST", "/api/v1/reservations", bytes.NewReader([]byte(benchBody)))
		q.Header = who
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, q); w.Code != 201 {
			b.Fatalf("%d: %s", w.Code, w.Body)
		}
	}
}

func overLoopback(b *testing.B, h http.Handler) {
	s := httptest.NewServer(h)
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}
	var users atomic.Int64
	b.SetParallelism(64)
	b.RunParallel(func(p *testing.PB) {
		credential := "Bearer " + token(users.Add(1))
		for p.Next() {
			q, _ := http.NewRequest("POST", s.URL+"/api/v1/reservations", bytes.NewReader([]byte(benchBody)))
			q.Header.Set("Authorization", credential)
			q.Header.Set("Content-Type", "application/json")
			answer, err := client.Do(q)
			if err != nil || answer.StatusCode != 201 {
				b.Errorf("%v %v", answer, err)
				return
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}
