package shell

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"golang.org/x/net/html"

	"dropbell/domain/staff"
	"dropbell/views/i18n"
	"dropbell/views/ui"
)

// liveParts are the live parts with viewers, and the routes they come from.
type liveParts struct {
	hub    *Hub[partKey, *liveFragment]
	routes chi.Router
	// own is the set of route patterns whose part is rendered for one member alone.
	own map[string]bool
}

// MaxParts is how many live parts one page may have.
const MaxParts = 8

// A partKey identifies a live part of a page. A part is rendered once for all viewers that see the
// same content: their permissions, language and time zone are in the key.
type partKey struct {
	path     string // where the part comes from, with its query
	language *i18n.Locale
	zone     *time.Location
	role     staff.Role
	shops    string // JSON
	member   int64  // the only member it is rendered for; 0 = all with these permissions
}

// KeyOf returns the key of the part at path for the viewer of f.
func (sh *Shell) KeyOf(f *ui.Frame, path string) partKey {
	shops, _ := json.Marshal(f.Member.Shops) // numbers
	k := partKey{path: path, language: f.Locale, zone: f.Zone, role: f.Member.Role, shops: string(shops)}
	if bare, _, _ := strings.Cut(path, "?"); len(f.Member.Shops) > 0 && sh.live.own[sh.live.routes.Find(chi.NewRouteContext(), http.MethodGet, bare)] {
		k.member = f.Member.ID
	}
	return k
}

// viewer returns a member with the permissions of the key. The member has an id only if the part is
// rendered for one member alone.
func (k partKey) viewer() (m staff.Member) {
	m.ID, m.Role = k.member, k.role
	_ = json.Unmarshal([]byte(k.shops), &m.Shops) // was written by keyOf
	return m
}

// A liveFragment is the state of a live part of a page.
type liveFragment struct {
	fragment
	sum   string
	every time.Duration // until the next look
	// Patch turns a page in the state before into this state.
	before string
	Patch  []byte
}

// Digest returns the sum of the part's HTML.
func (p *liveFragment) Digest() string { return p.sum }

// since returns the HTML that turns a page showing the state with that sum into the current state.
func (p *liveFragment) since(sum string) ([]byte, error) {
	switch {
	case sum == p.sum:
		return nil, nil
	case sum == p.before && p.Patch != nil:
		return p.Patch, nil
	}
	return replacing([]*html.Node{p.root})
}

// ErrReload says that the state of a part can only be shown by loading the page again.
var ErrReload = errors.New("the page is to be loaded anew")

// LookAtPart draws a part by asking the route that it comes from.
func (sh *Shell) LookAtPart(ctx context.Context, key partKey, before *liveFragment) (*liveFragment, error) {
	ctx, cancel := context.WithTimeout(ctx, WriteTimeout)
	defer cancel()
	f := &ui.Frame{Languages: sh.Languages.All(), Locale: key.language, Assets: sh.Assets, Path: key.path, Now: sh.Now(), Zone: cmp.Or(key.zone, sh.DefaultZone), Member: key.viewer()}
	r, err := http.NewRequestWithContext(ui.With(ctx, f), http.MethodGet, key.path, nil)
	if err != nil {
		return nil, ErrMalformed
	}
	r.Header.Set("HX-Request", "true")
	d := &drawing{header: http.Header{}, status: http.StatusOK}
	sh.live.routes.ServeHTTP(d, r)
	switch {
	case d.err != nil:
		return nil, d.err
	case d.status == http.StatusNotFound:
		return nil, ErrNoPage
	case d.header.Get("HX-Redirect") != "", d.header.Get("HX-Trigger") == ReloadEvent, d.status != http.StatusOK:
		return nil, ErrReload
	}
	if before != nil && bytes.Equal(before.raw, bytes.TrimSpace(d.Bytes())) {
		return before, nil
	}
	now, ok := readFragment(d.Bytes())
	if !ok {
		return nil, ErrReload
	}
	p := &liveFragment{fragment: now, sum: Digest(d.String()), every: d.every}
	if before == nil {
		return p, nil
	}
	if attribute(now.root, "id") != attribute(before.root, "id") {
		return nil, ErrReload // the page has nothing of that name
	}
	list, ok := now.since(before.fragment)
	if ok && len(list) == 0 {
		return before, nil
	}
	if !ok {
		list = []*html.Node{now.root}
	}
	p.before = before.sum
	p.Patch, err = replacing(list)
	return p, err
}

// A drawing is the answer of a route to the console itself.
type drawing struct {
	bytes.Buffer
	header http.Header
	status int
	every  time.Duration
	err    error
}

func (d *drawing) Header() http.Header    { return d.header }
func (d *drawing) WriteHeader(status int) { d.status = status }

// routesOfParts returns a router that serves parts to LookAtPart only. own is the set of patterns
// of parts in which staff who are limited to shops also see their own objects.
func routesOfParts(table []Route) (r chi.Router, own map[string]bool) {
	r, own = chi.NewRouter(), map[string]bool{}
	for _, rt := range table {
		if rt.Every == 0 {
			continue
		}
		own[rt.Pattern] = rt.Own
		r.Get(rt.Pattern, func(w http.ResponseWriter, r *http.Request) {
			d := w.(*drawing)
			d.every = rt.Every
			if d.err = Actor(r).May(rt.Needs, 0); d.err == nil {
				d.err = rt.Serve(w, r)
			}
		})
	}
	return r, own
}

// partPaths returns the addresses of the parts that a page shows.
func partPaths(r *http.Request) ([]string, error) {
	paths := r.Form["of"]
	if len(paths) > MaxParts {
		return nil, ErrMalformed
	}
	for _, p := range paths {
		u, err := url.Parse(p)
		if err != nil || u.IsAbs() || u.Host != "" || u.RequestURI() != p || !clean(u.Query()) {
			return nil, ErrMalformed
		}
	}
	return paths, nil
}

// A partState is a new state of one of a page's parts. The part is nil if it is no longer
// available.
type partState struct {
	index int
	part  *liveFragment
}

// A watched is a part of a stream.
type watched struct {
	partKey
	states <-chan *liveFragment
	leave  func()
}

// tell sends states as they arrive, until ctx ends.
func (w watched) tell(ctx context.Context, index int, to chan<- partState) {
	for {
		var n partState
		select {
		case p := <-w.states: // nil once there are no more
			n = partState{index, p}
		case <-ctx.Done():
			return
		}
		select {
		case to <- n:
		case <-ctx.Done():
			return
		}
		if n.part == nil {
			return
		}
	}
}
