package work

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"dropbell/domain/event/hook"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// Webhooks lists the endpoints that the viewer may see.
type Webhooks struct {
	List []hook.Endpoint
	// Shops are the shops' names by number.
	Shops map[int64]string
	// MayAdd says that the viewer may register endpoints of some shop.
	MayAdd bool
}

// WebhookForm registers an endpoint or changes it.
type WebhookForm struct {
	ID      int64 // 0 = a new one
	Version int64
	Values  map[string]string
	Types   []hook.Type
	Enabled bool
	// Rehearsals is [hook.Input.Rehearsals].
	Rehearsals bool
	Errors     []fault.Field
	Shops      []template.Shop
	// RequestKey makes sending the form twice create one endpoint.
	RequestKey string
}

// WebhookPage is one endpoint: its state, and the events that it was sent.
type WebhookPage struct {
	hook.Endpoint
	Shop       string
	Secret     string // once, after it was made
	Hours      []hook.Hour
	Deliveries []hook.Delivery
	State      string // of the deliveries shown; "" = all
	Since      string // as typed
	parts.Paged
}

// WebhookDelivery is one delivery with its request and its answer.
type WebhookDelivery struct {
	Endpoint hook.Endpoint
	hook.Details
}

// WebhookTypes is the catalogue of events.
type WebhookTypes struct {
	// Examples are payloads by type.
	Examples map[hook.Type]string
}

func webhookURL(id int64) string { return fmt.Sprintf("/webhooks/%d", id) }

func (p WebhookForm) action() string {
	if p.ID == 0 {
		return "/webhooks"
	}
	return webhookURL(p.ID)
}

func (p WebhookForm) title(ctx context.Context) string {
	if p.ID == 0 {
		return ui.T(ctx, "hooks.new")
	}
	return ui.T(ctx, "hooks.edit_title")
}

func webhookCrumbs(ctx context.Context, e *hook.Endpoint) []ui.Crumb {
	list := []ui.Crumb{{Label: ui.T(ctx, "nav.webhooks"), URL: "/webhooks"}}
	if e != nil {
		list = append(list, ui.Crumb{Label: webhookName(*e), URL: webhookURL(e.ID)})
	}
	return list
}

// webhookName is the description, or the address without one.
func webhookName(e hook.Endpoint) string {
	if e.Description != "" {
		return e.Description
	}
	return e.URL
}

func shopOptions(shops []template.Shop) (list []ui.Option) {
	for _, s := range shops {
		list = append(list, ui.Option{Value: strconv.FormatInt(s.Number, 10), Label: s.Name})
	}
	return list
}

func typeOptions(ctx context.Context) (list []ui.Option) {
	for _, t := range hook.Types() {
		list = append(list, ui.Option{Value: string(t), Label: ui.Bracketed(ctx, ui.T(ctx, "hooks.type."+string(t)), string(t))})
	}
	return list
}

func typeValues(types []hook.Type) []string {
	list := make([]string, len(types))
	for i, t := range types {
		list[i] = string(t)
	}
	return list
}

func webhookTone(s hook.State) ui.Tone {
	switch s {
	case hook.Working:
		return ui.Good
	case hook.Failing:
		return ui.Warn
	case hook.Disabled:
		return ui.Bad
	}
	return ui.Info
}

func deliveryTone(state string) ui.Tone {
	switch state {
	case "delivered":
		return ui.Good
	case "failed":
		return ui.Bad
	}
	return ui.Info
}

func deliveryStates(ctx context.Context) []ui.Option {
	list := []ui.Option{{Label: ui.T(ctx, "hooks.delivery.all")}}
	for _, s := range []string{"waiting", "delivered", "failed"} {
		list = append(list, ui.Option{Value: s, Label: ui.T(ctx, "hooks.delivery."+s)})
	}
	return list
}

// outcome describes the result of the last attempt in one line.
func outcome(ctx context.Context, d hook.Delivery) string {
	switch {
	case d.Attempts == 0:
		return ui.T(ctx, "hooks.no_attempt")
	case d.Error != "":
		return ui.Said(ctx, d.Error)
	}
	return "HTTP " + strconv.Itoa(d.Status)
}

// chartHours is for how many hours the chart of an endpoint has bars.
const chartHours = 48

// A hourBar is one hour of the chart, in its coordinates.
type hourBar struct {
	x          int
	good, bad  int // heights
	whole      time.Time
	sent, lost int64
}

const (
	hourWidth, hourGap = 10, 2
	chartHeight        = 60
)

// bars are the hours up to now, of which each that had attempts has a height.
func (p WebhookPage) bars(now time.Time) (list []hourBar) {
	by := map[time.Time]hook.Hour{}
	most := int64(1)
	for _, h := range p.Hours {
		by[h.Hour.UTC()] = h
		most = max(most, h.Delivered+h.Failed)
	}
	first := now.UTC().Truncate(time.Hour).Add(-(chartHours - 1) * time.Hour)
	height := func(n int64) int {
		if n == 0 {
			return 0
		}
		return max(2, int(n*(chartHeight-4)/most))
	}
	for i := range chartHours {
		h := by[first.Add(time.Duration(i)*time.Hour)]
		list = append(list, hourBar{x: i * hourWidth, good: height(h.Delivered), bad: height(h.Failed), sent: h.Delivered, lost: h.Failed})
	}
	return list
}

// chartStart is the hour at which the chart begins.
func (p WebhookPage) chartStart(ctx context.Context) string {
	f := ui.From(ctx)
	at := f.Now.UTC().Truncate(time.Hour).Add(-(chartHours - 1) * time.Hour)
	return f.Locale.DateTime(at, f.Zone) + " " + f.Locale.Zone(at, f.Zone)
}

// mostInAnHour is the number of attempts at the top of the chart.
func (p WebhookPage) mostInAnHour() int64 {
	var most int64
	for _, h := range p.Hours {
		most = max(most, h.Delivered+h.Failed)
	}
	return most
}

// health says the chart in words.
func (p WebhookPage) health(ctx context.Context) string {
	var sent, lost int64
	var took time.Duration
	for _, h := range p.Hours {
		sent, lost, took = sent+h.Delivered, lost+h.Failed, took+h.Took
	}
	if sent+lost == 0 {
		return ui.T(ctx, "hooks.health_none")
	}
	return ui.T(ctx, "hooks.health", sent, lost, (took / time.Duration(sent+lost)).Milliseconds())
}

func indented(payload string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(payload), "", "  ") != nil {
		return payload
	}
	return b.String()
}

func num(n int) string { return strconv.Itoa(n) }
