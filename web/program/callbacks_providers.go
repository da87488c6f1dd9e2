package program

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/mailfeedback"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/sms/aliyun"
	"dropbell/adapters/sms/jsonapi"
	"dropbell/adapters/sms/tencent"
	"dropbell/adapters/sms/twilio"
	"dropbell/app"
	"dropbell/domain/delivery/feedback"
	"dropbell/web/callbacks"
)

// sourcesFor is how long a change of a provider may remain unknown to callbacks.
const sourcesFor = 2 * time.Second

// providerSources read the callbacks of configured providers, each with its own secrets. Disabled
// providers are included: they still report on messages that they accepted before.
type providerSources struct {
	*program
	store deliverydb.Configured
	refs  feedback.Refs

	mu     sync.Mutex
	readAt time.Time
	state  int64
	byID   map[int64]callbacks.Source // nil = never read
}

func (p *program) newProviderSources() *providerSources {
	return &providerSources{program: p, store: p.Stores.Providers, refs: feedback.NewRefs(p.Config.LinkSecret)}
}

// find returns the source of a provider; nil if there is none of that name.
func (s *providerSources) find(ctx context.Context, name string, id int64) (callbacks.Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil || time.Since(s.readAt) > sourcesFor {
		if err := s.read(ctx); err != nil && s.byID == nil {
			return nil, err
		}
		s.readAt = time.Now()
	}
	if of := s.byID[id]; of != nil && of.Name() == name {
		return of, nil
	}
	return nil, nil
}

func (s *providerSources) read(ctx context.Context) error {
	state, err := s.store.State(ctx)
	if err != nil || s.byID != nil && state == s.state {
		return err
	}
	list, err := s.store.All(ctx)
	if err != nil {
		return err
	}
	s.state, s.byID = state, map[int64]callbacks.Source{}
	for _, one := range list {
		secrets, err := one.Open(s.providers.Box)
		var of callbacks.Source
		if err == nil {
			of, err = s.source(s.refs, one.ReportsAt(), strings.FieldsFunc(one.Settings["topics"], func(c rune) bool { return c == ',' || c == ' ' }), secrets)
		}
		if err != nil {
			s.Log.Error("the reports of a provider cannot be read", "provider", one.ID, "name", one.Name, "error", err)
		}
		if of != nil {
			s.byID[one.ID] = of
		}
	}
	return nil
}

// source returns the reader of the callbacks with that name. The reader verifies them by the topics
// of Amazon SNS or by the secrets of a configured provider. source returns nil if the provider
// makes no callbacks, or nothing would prove their origin.
func (p *program) source(refs feedback.Refs, name string, topics []string, secrets map[string]string) (callbacks.Source, error) {
	key := secrets["reports_key"]
	switch {
	case name == "sms":
		return jsonapi.Source{Token: secrets["token"], Refs: refs}, nil
	case name == "twilio":
		return twilio.Source{AuthToken: secrets["key_secret"], Refs: refs}, nil
	case name == "aliyun":
		return aliyun.Source{Key: secrets["token"], Refs: refs}, nil
	case name == "tencent":
		return tencent.Source{Key: secrets["token"], Refs: refs, Serials: p.Stores.Serials}, nil
	case name == "ses" && len(topics) > 0:
		return mailfeedback.NewSES(topics, refs, http.DefaultClient, app.Clock), nil
	case key == "":
		return nil, nil
	case name == "sendgrid":
		return mailfeedback.NewSendGrid(key, refs, app.Clock)
	case name == "mailgun":
		return mailfeedback.NewMailgun(key, refs, app.Clock), nil
	case name == "postmark":
		return mailfeedback.NewPostmark(key, refs), nil
	case name == "directmail":
		return mailfeedback.NewDirectMail(key, refs, http.DefaultClient, app.Clock), nil
	}
	return nil, nil
}

// callbackSources returns the sources of the environment's providers. An SMS provider without
// signatures has a source only if a secret is configured for its address.
func (p *program) callbackSources() (sources []callbacks.Source, err error) {
	c, refs := p.Config, feedback.NewRefs(p.Config.LinkSecret)
	sms := c.SMS.Provider
	switch {
	case !c.SMS.Configured() || sms != config.SMSTwilio && c.SMS.Token == "":
		sms = ""
	case sms == config.SMSJSON:
		sms = "sms"
	}
	for _, one := range []struct {
		name    string
		secrets map[string]string
	}{
		{"ses", nil},
		{"sendgrid", map[string]string{"reports_key": c.SendGridKey}},
		{"mailgun", map[string]string{"reports_key": c.MailgunKey}},
		{"postmark", map[string]string{"reports_key": c.PostmarkSecret}},
		{"directmail", map[string]string{"reports_key": c.DirectMailToken}},
		{sms, map[string]string{"token": c.SMS.Token, "key_secret": c.SMS.KeySecret}},
	} {
		s, err := p.source(refs, one.name, c.SESTopics, one.secrets)
		if err != nil {
			return nil, err
		}
		if s != nil {
			sources = append(sources, s)
		}
	}
	return sources, nil
}
