package drops

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/i18n"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

const (
	// aheadLife is the greatest age of a forecast that a cockpit shows. A forecast reads every
	// drop.
	aheadLife = 5 * time.Second
	// pastRenderings is how many states a browser may be behind and still receive only the
	// differences.
	pastRenderings = 30
)

// A rendering is one state of a cockpit, rendered once for each language.
type rendering struct {
	page droppages.Cockpit
	zone *time.Location

	mu    sync.Mutex
	cells map[*i18n.Locale]ui.Cells
}

func newRendering(p droppages.Cockpit, zone *time.Location, original *i18n.Locale) *rendering {
	f := &rendering{page: p, zone: zone, cells: map[*i18n.Locale]ui.Cells{}}
	f.page.Sum = shell.Digest(f.page.Shape(), f.in(original))
	return f
}

// in returns the state's values in a language.
func (f *rendering) in(l *i18n.Locale) ui.Cells {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cells[l] == nil {
		f.cells[l] = f.page.Cells(ui.With(context.Background(), &ui.Frame{Locale: l, Now: f.page.At, Zone: f.zone}))
	}
	return f.cells[l]
}

// snapshots are a cockpit's current state and its earlier states.
type snapshots struct {
	*rendering
	past []*rendering // newest last

	mu      sync.Mutex
	patches map[patchKey][]byte
}

type patchKey struct {
	from     string
	language *i18n.Locale
}

func (d *snapshots) Digest() string { return d.page.Sum }

// patch returns, as JSON, the values that change a page from the state from to the current state;
// nil if they are the same state. A patch is made once for all viewers with the same state and
// language.
func (d *snapshots) patch(from string, l *i18n.Locale) []byte {
	if from == d.page.Sum {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key := patchKey{from, l}
	before := d.renderingOf(from)
	if before == nil {
		key.from = "" // unknown state: everything is sent
	}
	if raw := d.patches[key]; raw != nil {
		return raw
	}
	raw := d.draw(before, l)
	d.patches[key] = raw
	return raw
}

func (d *snapshots) renderingOf(sum string) *rendering {
	for _, f := range d.past {
		if f.page.Sum == sum {
			return f
		}
	}
	return nil
}

func (d *snapshots) draw(before *rendering, l *i18n.Locale) []byte {
	cells := d.in(l)
	if before != nil {
		cells = cells.Since(before.in(l))
	}
	raw, _ := json.Marshal(cells) // strings
	return raw
}

// readSnapshots reads a drop. Rows that the snapshot before holds are not read again.
func (h *handlers) readSnapshots(ctx context.Context, templateID int64, before *snapshots) (*snapshots, error) {
	ctx, cancel := context.WithTimeout(ctx, shell.WriteTimeout)
	defer cancel()
	t, err := h.Templates.Template(ctx, staff.System(), templateID)
	if err != nil {
		return nil, err
	}
	p := droppages.Cockpit{Template: t, At: h.Now()}
	var known []reminder.CockpitRow
	if before != nil {
		known = before.page.Snapshot.Settled()
	}
	if p.Snapshot, err = h.Cockpits.Cockpit(ctx, templateID, known); err != nil {
		return nil, err
	}
	if p.Channels, err = h.States.Get(ctx); err != nil {
		return nil, err
	}
	if p.Pulse, err = h.pulse(ctx, p, before); err != nil {
		return nil, err
	}
	if p.Ahead, err = h.aheadOf(ctx, t); err != nil {
		return nil, err
	}
	d := &snapshots{rendering: newRendering(p, h.DefaultZone, h.Languages.Default()), patches: map[patchKey][]byte{}}
	if before == nil {
		return d, nil
	}
	if d.page.Sum == before.page.Sum { // no subscriber is notified
		d.past = before.past
		return d, nil
	}
	d.past = append(append([]*rendering{}, before.past[max(0, len(before.past)-pastRenderings+1):]...), before.rendering)
	return d, nil
}

// pulse extends the pulse of the previous look, or reads it from the batches of the last minutes.
func (h *handlers) pulse(ctx context.Context, p droppages.Cockpit, before *snapshots) (reminder.Pulse, error) {
	if before == nil {
		spans, err := h.Cockpits.Spans(ctx, p.ID, reminder.PulseSteps*reminder.PulseStep)
		pulse := reminder.Pulse{}.Until(p.Snapshot.At)
		for _, s := range spans {
			pulse = pulse.Plus(s)
		}
		return pulse, err
	}
	from := before.page.Pulse.At()
	pulse := before.page.Pulse.Until(p.Snapshot.At)
	was, is := before.page.Snapshot.Sent(), p.Snapshot.Sent()
	for _, ch := range delivery.AllChannels() {
		pulse = pulse.Plus(reminder.Span{Channel: ch, From: from, To: p.Snapshot.At, Sent: is[ch] - was[ch]})
	}
	return pulse, nil
}

// aheadOf returns the forecast for the drop.
func (h *handlers) aheadOf(ctx context.Context, t template.Template) (list []forecast.Prognosis, err error) {
	all, err := h.ahead.Get(ctx)
	for _, ch := range all {
		for _, j := range ch.Jobs {
			if j.TemplateID == t.ID {
				list = append(list, j)
			}
		}
	}
	return list, err
}

// showCockpit leads to the live tab, which the cockpit has become.
func (h *handlers) showCockpit(w http.ResponseWriter, r *http.Request, t template.Template) error {
	shell.Redirect(w, r, shell.TemplateURL(t.ID)+"?tab="+string(droppages.TabLive))
	return nil
}

// cockpit returns the content of the live tab below the part that all tabs have.
func (h *handlers) cockpit(ctx context.Context, t template.Template) (*droppages.Cockpit, error) {
	d, err := h.cockpits.Peek(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	p := d.page
	return &p, nil
}

// showWave answers with the wave of a slot that is going out.
func (h *handlers) showWave(w http.ResponseWriter, r *http.Request, t template.Template) error {
	if !shell.Partial(r) { // the address was opened as a page
		shell.Redirect(w, r, shell.TemplateURL(t.ID)+"?tab="+string(droppages.TabLive))
		return nil
	}
	board, err := h.Board.Board(r.Context(), t.ID)
	if err != nil {
		return err
	}
	c, err := h.wave(r, droppages.Drop{Template: t, Board: board})
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, c.Card())
}

// waveTail is how long after the opening the outcomes of the last slot may still be recorded.
const waveTail = 5 * time.Minute

// wave returns how the requested slot was sent, by default the slot that fired last.
func (h *handlers) wave(r *http.Request, d droppages.Drop) (*droppages.WaveCard, error) {
	asked, _ := strconv.ParseInt(r.FormValue("slot"), 10, 64) // nonsense is the last one
	c, err := h.waveOf(r.Context(), d, asked)
	c.Replay = r.FormValue("replay") != ""
	return c, err
}

// waveOf returns how the slot with the id asked was sent, without this slot how the slot that fired
// last was sent.
func (h *handlers) waveOf(ctx context.Context, d droppages.Drop, asked int64) (*droppages.WaveCard, error) {
	c := droppages.WaveCard{Template: d.ID, Zone: d.Zone()}
	// Slots of several doors fire in turns.
	rows := slices.SortedStableFunc(slices.Values(d.Board.Rows), func(a, b reminder.Row) int { return a.DueAt.Compare(b.DueAt) })
	for _, row := range rows {
		var sent int64
		for _, cell := range row.Cells {
			sent += cell.Counts.Sent
		}
		if row.FiredAt == nil || sent == 0 {
			continue
		}
		c.Slots = append(c.Slots, row)
		if row.ID == asked || c.Chosen.ID != asked || asked == 0 {
			c.Chosen = row
		}
	}
	c.Asked, c.Grows = asked != 0 && c.Chosen.ID == asked, d.State(h.Now()) == template.Scheduled || h.Now().Before(d.OpensAt.Add(waveTail))
	if c.Chosen.ID == 0 {
		return &c, nil
	}
	spans, err := h.Cockpits.SlotSpans(ctx, c.Chosen.ID)
	c.Wave = reminder.WaveOf(spans)
	due := c.Chosen.DueAt
	if c.Chosen.PlannedAt.After(due) {
		due = c.Chosen.PlannedAt
	}
	c.Minute, c.Later = reminder.MinuteOf(spans, due)
	return &c, err
}

// streamCockpit sends the changes of a cockpit as server-sent events: the changed values, not the
// parts of the page that show them.
func (h *handlers) streamCockpit(w http.ResponseWriter, r *http.Request, t template.Template) error {
	s, err := h.OpenStream(w, r)
	if err != nil {
		return err
	}
	defer s.Close()
	states, leave := h.cockpits.Join(t.ID)
	defer leave()
	language := shell.Frame(r).Locale
	shell.Pump(h.Shell, s, states, func(d *snapshots) error {
		if err := shell.Actor(s.Request).May(staff.View, d.page.ShopNumber); err != nil {
			return err
		}
		from := s.Seen[0]
		s.Seen[0] = d.page.Sum
		if before := d.renderingOf(from); before != nil && before.page.Shape() != d.page.Shape() {
			return s.Event(shell.ReloadEvent, nil)
		}
		if raw := d.patch(from, language); raw != nil {
			return s.Event("dropbell:cells", raw)
		}
		return nil
	})
	return nil
}
