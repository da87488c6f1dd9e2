package drops

import (
	"context"
	"net/http"

	"dropbell/domain/message"
	"dropbell/web/api/pipeline"
)

// Sender is the sender of a shop's mails.
type Sender struct {
	Name          string `json:"name" maxLength:"200" doc:"Readers see it as the sender; empty = the name of the mail server's settings." example:"Tea House"`
	ReplyTo       string `json:"reply_to" maxLength:"254" doc:"The mail address that gets readers' answers; empty = the sender's." example:"help@tea.example"`
	Preheader     string `json:"preheader" maxLength:"200" doc:"Mail programs show it after the subject. It may have variables that every message has, such as {{shop}} and {{worth}}." example:"{{worth}}"`
	PostalAddress string `json:"postal_address" maxLength:"300" doc:"Stands at the end of every mail; at most six lines." example:"1 Tea Road, Shanghai"`
}

// ShopPath is the number of a shop in a path.
type ShopPath struct {
	Number string `path:"number" pattern:"^[1-9][0-9]{0,18}$"`
}

func (h *handlers) senderRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/shops/{number}/sender", "get-sender", "Get the sender of a shop's mails", pipeline.Route{}), h.sender)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPut, "/admin/shops/{number}/sender", "put-sender", "Set the sender of a shop's mails",
		pipeline.Route{Codes: []string{"message_not_found", "stale_version"},
			Example: `{"name":"Tea House","reply_to":"help@tea.example","preheader":"{{worth}}","postal_address":"1 Tea Road, Shanghai"}`}), h.putSender)
}

func (h *handlers) sender(ctx context.Context, in *ShopPath) (*struct{ Body Sender }, error) {
	number, err := pipeline.ParseID("path.number", in.Number)
	if err != nil {
		return nil, err
	}
	s, err := h.Messages.Sender(ctx, pipeline.ActorOf(ctx), number)
	if err != nil {
		return nil, err
	}
	return &struct{ Body Sender }{Sender{s.Name, s.ReplyTo, s.Preheader, s.Postal}}, nil
}

func (h *handlers) putSender(ctx context.Context, in *struct {
	ShopPath
	Body Sender
}) (*struct{ Body Sender }, error) {
	number, err := pipeline.ParseID("path.number", in.Number)
	if err != nil {
		return nil, err
	}
	b := in.Body
	err = h.Messages.SetSender(ctx, pipeline.ActorOf(ctx), number, message.Sender{Name: b.Name, ReplyTo: b.ReplyTo, Preheader: b.Preheader, Postal: b.PostalAddress})
	if err != nil {
		return nil, err
	}
	return &struct{ Body Sender }{b}, nil
}
