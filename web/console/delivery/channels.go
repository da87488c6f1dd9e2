package delivery

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/testmessage"
	deliverypages "dropbell/views/pages/delivery"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func (h *handlers) listChannels(w http.ResponseWriter, r *http.Request) error {
	status, err := h.States.Get(r.Context())
	if err != nil {
		return err
	}
	p := deliverypages.Channels{Status: status}
	return h.Either(w, r, p.Live(), p.Page())
}

func channelOf(r *http.Request) (delivery.Channel, error) {
	ch, err := delivery.ParseChannel(r.PathValue("channel"))
	if err != nil {
		return 0, shell.ErrNoPage
	}
	return ch, nil
}

// sharedChannel is [channelOf] for confirmations that only members who may decide for every shop
// see.
func sharedChannel(r *http.Request) (delivery.Channel, error) {
	ch, err := channelOf(r)
	if err == nil {
		err = shell.Actor(r).MayEverywhere(staff.Operate)
	}
	return ch, err
}

// dropOf returns the drop whose live page made the request; 0 = none.
func dropOf(r *http.Request) int64 {
	n, err := strconv.ParseInt(r.FormValue("drop"), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// channelsURL leads back to the page of the drop.
func channelsURL(drop int64) string {
	if drop > 0 {
		return fmt.Sprintf("/templates/%d?tab=live", drop)
	}
	return "/channels"
}

func channelCrumbs(r *http.Request) []ui.Crumb {
	return []ui.Crumb{{Label: shell.Say(r, "nav.channels"), URL: "/channels"}}
}

func (h *handlers) channelQuestion(r *http.Request, ch delivery.Channel) pageparts.Confirmation {
	step, name, drop := r.PathValue("step"), shell.Say(r, "channel."+ch.String()), dropOf(r)
	p := ui.ConfirmProps{Title: shell.Say(r, "confirm.channel_"+step+".title", name), Points: []string{shell.Say(r, "confirm.channel_"+step+".1")},
		Action: fmt.Sprintf("/channels/%s/%s", ch, step), Cancel: channelsURL(drop), Submit: shell.Say(r, "channels."+step), Kind: "primary", Reason: shell.Reason(r)}
	if step == "pause" {
		p.Points = append(p.Points, shell.Say(r, "confirm.channel_pause.2"), shell.Say(r, "confirm.channel_pause.3"))
		p.Kind, p.NeedsReason = "danger", true
	}
	if drop > 0 {
		p.Hidden = [][2]string{{"drop", strconv.FormatInt(drop, 10)}}
	}
	return pageparts.Confirmation{Active: "channels", Crumbs: channelCrumbs(r), ConfirmProps: p}
}

func (h *handlers) confirmChannel(w http.ResponseWriter, r *http.Request, ch delivery.Channel) error {
	return h.Ask(w, r, http.StatusOK, h.channelQuestion(r, ch))
}

func (h *handlers) changeChannel(w http.ResponseWriter, r *http.Request, ch delivery.Channel) error {
	decide, text := h.Control.Resume, "channels.resumed_now"
	if r.PathValue("step") == "pause" {
		decide, text = h.Control.Pause, "channels.paused_now"
	}
	now, err := decide(r.Context(), shell.Actor(r), ch, shell.Reason(r))
	if errors.Is(err, delivery.ErrPaused) {
		p := h.channelQuestion(r, ch)
		p.ReasonError = shell.Say(r, "channels.paused_already", now.PausedBy, shell.Frame(r).Locale.DateTime(now.PausedAt, shell.Frame(r).Zone), now.PausedReason)
		return h.Ask(w, r, http.StatusConflict, p)
	}
	if broken := shell.FieldsOf(err); broken != nil {
		p := h.channelQuestion(r, ch)
		p.ReasonError = ui.FieldText(r.Context(), broken[0])
		return h.Ask(w, r, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	h.States.Forget()
	return h.Done(w, r, channelsURL(dropOf(r)), ui.Good, shell.Say(r, text, shell.Say(r, "channel."+ch.String())))
}

// rateQuestion returns the form of a channel's rate. was is the rate that the form first showed.
func (h *handlers) rateQuestion(r *http.Request, ch delivery.Channel, was, typed, broken string) pageparts.Confirmation {
	return pageparts.Confirmation{Active: "channels", Crumbs: channelCrumbs(r),
		Inside: ui.Field(ui.FieldProps{Name: "rate_per_second", Label: shell.Say(r, "channels.rate_field"), Help: shell.Say(r, "channels.rate_help"), Value: typed,
			Error: broken, InputMode: "numeric", Required: true, Autocomplete: "off", Suffix: shell.Say(r, "replay.per_second")}),
		ConfirmProps: ui.ConfirmProps{Title: shell.Say(r, "channels.rate_title", shell.Say(r, "channel."+ch.String())), Points: []string{shell.Say(r, "channels.rate_1")},
			Action: fmt.Sprintf("/channels/%s/rate", ch), Cancel: "/channels", Submit: shell.Say(r, "channels.rate_do"), Kind: "primary", Reason: shell.Reason(r),
			Hidden: [][2]string{{"was_rate_per_second", was}}}}
}

func (h *handlers) rateForm(w http.ResponseWriter, r *http.Request, ch delivery.Channel) error {
	settings, err := h.Settings.Settings(r.Context())
	if err != nil {
		return err
	}
	now := strconv.Itoa(settings[ch].RatePerSecond)
	return h.Ask(w, r, http.StatusOK, h.rateQuestion(r, ch, now, now, ""))
}

func (h *handlers) saveRate(w http.ResponseWriter, r *http.Request) error {
	ch, err := channelOf(r)
	if err != nil {
		return err
	}
	if err := shell.Actor(r).MayEverywhere(staff.Operate); err != nil {
		return err
	}
	typed, was := r.PostFormValue("rate_per_second"), r.PostFormValue("was_rate_per_second")
	rd := &shell.Reading{Values: map[string]string{"rate_per_second": typed}}
	rate, broken := rd.Number("rate_per_second"), rd.Broken.List
	if broken == nil {
		now, err := h.Control.SetRate(r.Context(), shell.Actor(r), ch, shell.ShownRate(r), int(min(rate, delivery.MaxRate+1)), shell.Reason(r))
		if errors.Is(err, fault.ErrStale) {
			// The new form shows the present rate: a member who sends it again confirms the change.
			is := strconv.Itoa(now.RatePerSecond)
			return h.Ask(w, r, http.StatusConflict, h.rateQuestion(r, ch, is, typed, shell.Say(r, "rule.changed_to", is)))
		}
		if broken = shell.FieldsOf(err); broken == nil && err != nil {
			return err
		}
	}
	if broken != nil {
		return h.Ask(w, r, http.StatusUnprocessableEntity, h.rateQuestion(r, ch, was, typed, ui.FieldText(r.Context(), broken[0])))
	}
	h.States.Forget()
	return h.Done(w, r, "/channels", ui.Good, shell.Say(r, "channels.rate_now", shell.Say(r, "channel."+ch.String())))
}

// shownTests is how many test messages are shown.
const shownTests = 10

func (h *handlers) testsPage(r *http.Request, ch delivery.Channel) (deliverypages.ChannelTests, error) {
	p := deliverypages.ChannelTests{Channel: ch, Recipient: r.FormValue("recipient"), Template: r.FormValue("template"), Configured: h.Channels.Has(ch)}
	var err error
	if p.Provider, err = h.testedProvider(r, ch); err != nil {
		return p, err
	}
	p.List, err = h.Tests.Tests(r.Context(), shell.Actor(r), ch, shownTests)
	return p, err
}

// showTests shows the form and the results of the last test messages. The list reloads while a
// message is in flight.
func (h *handlers) showTests(w http.ResponseWriter, r *http.Request, ch delivery.Channel) error {
	p, err := h.testsPage(r, ch)
	if err != nil {
		return err
	}
	return h.Either(w, r, p.Results(), p.Page())
}

func (h *handlers) startTest(w http.ResponseWriter, r *http.Request, ch delivery.Channel) error {
	wish := testmessage.TestWish{Channel: ch, Recipient: r.PostFormValue("recipient"), Locale: shell.Frame(r).Locale.Tag}
	tested, err := h.testedProvider(r, ch)
	if err != nil {
		return err
	}
	wish.Provider = tested.ID
	broken, err := h.testTemplate(r, &wish)
	if err == nil && broken == nil {
		_, err = h.Tests.Start(r.Context(), shell.Actor(r), wish)
		broken = shell.FieldsOf(err)
	}
	refused := broken != nil || fault.KindOf(err) == fault.Throttled || fault.KindOf(err) == fault.Invalid
	if err != nil && !refused {
		return err
	}
	if refused {
		p, failed := h.testsPage(r, ch)
		if failed != nil {
			return failed
		}
		if p.Errors = broken; broken == nil {
			p.Error = ui.FaultText(r.Context(), err)
		}
		return h.Show(w, r, http.StatusUnprocessableEntity, p.Page())
	}
	return h.Done(w, r, deliverypages.TestURL(ch, tested.ID), ui.Good, shell.Say(r, "tests.asked"))
}

// testedProvider returns the provider under test; the zero Provider = the provider that the
// channel's messages are sent through.
func (h *handlers) testedProvider(r *http.Request, ch delivery.Channel) (provider.Provider, error) {
	typed := r.FormValue("provider")
	if typed == "" {
		return provider.Provider{}, nil
	}
	id, err := strconv.ParseInt(typed, 10, 64)
	if err != nil {
		return provider.Provider{}, provider.ErrNotFound
	}
	p, err := h.Providers.Provider(r.Context(), shell.Actor(r), id)
	if err == nil && p.Channel != ch {
		err = provider.ErrNotFound
	}
	return p, err
}

// testTemplate reads the drop of the message; the sender must be allowed to see the drop.
func (h *handlers) testTemplate(r *http.Request, wish *testmessage.TestWish) ([]fault.Field, error) {
	typed := strings.TrimSpace(r.PostFormValue("template"))
	if typed == "" {
		return nil, nil
	}
	var e fault.Fields
	n := h.Named(r, shell.Drops, "template", typed, &e)
	if len(e.List) > 0 {
		return e.List, nil
	}
	var err error
	if n > 0 {
		_, err = h.Templates.Template(r.Context(), shell.Actor(r), n)
		if kind := fault.KindOf(err); err != nil && kind != fault.NotFound && kind != fault.Denied {
			return nil, err
		}
	}
	if err != nil || n <= 0 {
		e.Add("template", "rule.unknown_template", "there is no such template")
	}
	wish.TemplateID = n
	return e.List, nil
}
