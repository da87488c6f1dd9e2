// A program that is run as web, as worker and to migrate. Its web has just enough API
// for the demo data to be loaded into, and stores requests in fake.json, which the test reads.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
)

type template struct {
	ID      string `json:"id"`
	Shop    string `json:"shop_number"`
	Name    string `json:"name"`
	State   string `json:"state"`
	OpensAt string `json:"opens_at"`
}

type state struct {
	mu        sync.Mutex
	Keys      map[string]int // Authorization header → requests
	Users     int
	Templates []*template
	Reserved  map[string]int // "template user" → reminders
}

func main() {
	switch os.Args[1] {
	case "web":
		serve()
	case "worker":
		work()
	case "migrate":
		os.WriteFile("migrated", []byte(os.Getenv("DATABASE_URL")), 0o644)
	}
}

func serve() {
	s := &state{Keys: map[string]int{}, Reserved: map[string]int{}}
	if raw, err := os.ReadFile("fake.json"); err == nil {
		json.Unmarshal(raw, s)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"info":{"title":"Dropbell API"}}`) })
	mux.HandleFunc("GET /pid", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) })
	mux.HandleFunc("GET /api/v1/admin/templates", s.list)
	mux.HandleFunc("POST /api/v1/admin/templates", s.create)
	mux.HandleFunc("POST /api/v1/admin/templates/{id}/publish", s.publish)
	mux.HandleFunc("PUT /api/v1/admin/users", s.users)
	mux.HandleFunc("PUT /api/v1/admin/shops/{number}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	mux.HandleFunc("POST /api/v1/reservations", s.reserve)
	mux.HandleFunc("POST /save", s.save)
	fmt.Fprintln(os.Stderr, `{"level":"WARN","msg":"a warning for the terminal"}`)
	fmt.Fprintln(os.Stderr, `{"level":"INFO","msg":"nothing for the terminal"}`)
	http.ListenAndServe(os.Getenv("HTTP_ADDR"), s.locked(mux))
}

func (s *state) locked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Keys[r.Header.Get("Authorization")]++
		next.ServeHTTP(w, r)
	})
}

// list supports the filters from and to only.
func (s *state) list(w http.ResponseWriter, r *http.Request) {
	from, to := r.FormValue("from"), r.FormValue("to")
	found := []*template{}
	for _, t := range s.Templates {
		if t.OpensAt >= from && (to == "" || t.OpensAt < to) {
			found = append(found, t)
		}
	}
	json.NewEncoder(w).Encode(map[string]any{"templates": found})
}

func (s *state) create(w http.ResponseWriter, r *http.Request) {
	t := &template{}
	json.NewDecoder(r.Body).Decode(t)
	t.ID, t.State = strconv.Itoa(len(s.Templates)+1), "draft"
	s.Templates = append(s.Templates, t)
	w.WriteHeader(http.StatusCreated)
	json.NewEncoder(w).Encode(t)
}

func (s *state) publish(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.PathValue("id"))
	s.Templates[n-1].State = "scheduled"
	json.NewEncoder(w).Encode(s.Templates[n-1])
}

func (s *state) users(w http.ResponseWriter, r *http.Request) {
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		s.Users++
	}
	fmt.Fprintf(w, `{"upserted":%d,"errors":[]}`, s.Users)
}

// reserve is busy now and then, as a real server may be.
func (s *state) reserve(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Template  string `json:"template_id"`
		Reminders []any  `json:"reminders"`
	}
	json.NewDecoder(r.Body).Decode(&q)
	key := q.Template + " " + r.Header.Get("X-User-ID")
	if len(s.Reserved)%500 == 499 {
		s.Reserved["busy "+key] = 0
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	s.Reserved[key] += len(q.Reminders)
	w.WriteHeader(http.StatusCreated)
}

func (s *state) save(http.ResponseWriter, *http.Request) {
	raw, _ := json.Marshal(s)
	os.WriteFile("fake.json", raw, 0o644)
}
