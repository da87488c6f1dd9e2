package program

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"dropbell/adapters/mailfeedback"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/sms/aliyun"
	"dropbell/adapters/sms/jsonapi"
	"dropbell/adapters/sms/tencent"
	"dropbell/adapters/sms/twilio"
	"dropbell/app"
	"dropbell/domain/feedback"
	"dropbell/domain/provider"
	"dropbell/web/callbacks"
)

// sourcesFor is how long a change of a provider may remain unknown to callbacks.
const sourcesFor = 2 * time.Second

// providerSources read the callbacks of configured providers, each with its own secrets.
// Disabled providers are among them: they report on what they took before.
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
	return &providerSources{program: p, store: deliverydb.NewConfigured(p.DB), refs: feedback.NewRefs(p.Config.LinkSecret)}
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
			of, err = s.source(one, secrets)
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

// source reads what one provider reports; nil if it makes no calls, or nothing would prove
// that they are its own.
func (s *providerSources) source(p provider.Provider, secrets map[string]string) (callbacks.Source, error) {
	key := secrets["reports_key"]
	switch p.ReportsAt() {
	case "sms":
		return jsonapi.Source{Token: secrets["token"], Refs: s.refs}, nil
	case "twilio":
		return twilio.Source{AuthToken: secrets["key_secret"], Refs: s.refs}, nil
	case "aliyun":
		return aliyun.Source{Key: secrets["token"], Refs: s.refs}, nil
	case "tencent":
		return tencent.Source{Key: secrets["token"], Refs: s.refs, Serials: deliverydb.NewSerials(s.DB)}, nil
	case "ses":
		topics := strings.FieldsFunc(p.Settings["topics"], func(c rune) bool { return c == ',' || c == ' ' })
		if len(topics) > 0 {
			return mailfeedback.NewSES(topics, s.refs, http.DefaultClient, app.Clock), nil
		}
	case "sendgrid":
		if key != "" {
			return mailfeedback.NewSendGrid(key, s.refs, app.Clock)
		}
	case "mailgun":
		if key != "" {
			return mailfeedback.NewMailgun(key, s.refs, app.Clock), nil
		}
	case "postmark":
		if key != "" {
			return mailfeedback.NewPostmark(key, s.refs), nil
		}
	case "directmail":
		if key != "" {
			return mailfeedback.NewDirectMail(key, s.refs, http.DefaultClient, app.Clock), nil
		}
	}
	return nil, nil
}
