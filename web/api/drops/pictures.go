package drops

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"dropbell/domain/picture"
	"dropbell/web/api/pipeline"
)

// Picture is a picture of a shop's library.
type Picture struct {
	ID        string    `json:"id" example:"7"`
	Hash      string    `json:"hash" doc:"The SHA-256 of the stored file, by which the picture is described and deleted." example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	Address   string    `json:"address" doc:"Permanent: what is behind it never changes." example:"https://drops.example.com/pictures/10/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.png"`
	Type      string    `json:"type" example:"image/png"`
	Width     int       `json:"width" example:"1200"`
	Height    int       `json:"height" example:"600"`
	Bytes     int       `json:"bytes" example:"81234"`
	Name      string    `json:"name" doc:"The name of the uploaded file." example:"cakes.png"`
	Alt       string    `json:"alt" doc:"What the picture shows, for readers who do not see it." example:"Moon cakes"`
	CreatedAt time.Time `json:"created_at"`
}

// PictureList is a page of a library, the newest first.
type PictureList struct {
	Pictures []Picture `json:"pictures" nullable:"false"`
	Next     string    `json:"next,omitempty" doc:"The value of before for the next page; absent on the last."`
}

func (h *handlers) picture(p picture.Picture) Picture {
	return Picture{ID: pipeline.Decimal(p.ID), Hash: p.Hash, Address: strings.TrimRight(h.PublicURL(), "/") + p.Path(), Type: p.ContentType(), Width: p.Width, Height: p.Height, Bytes: p.Bytes,
		Name: p.Name, Alt: p.Alt, CreatedAt: p.At.UTC()}
}

func (h *handlers) pictureRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/shops/{number}/pictures", "list-pictures", "List the pictures of a shop", pipeline.Route{}), h.listPictures)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/shops/{number}/pictures", "upload-picture", "Upload a picture",
		pipeline.Route{Traits: pipeline.Traits{Stream: true}, Status: http.StatusCreated,
			Description: "The body is the file itself: JPEG, PNG, GIF or WebP of at most 10 MB. The picture is turned upright, reduced to 1200 × 1800 pixels and freed of its metadata. " +
				"Repeating an upload returns the same picture.",
			Codes: []string{"picture_not_found", "picture_library_full", "pictures_busy", "picture_store", "unsupported_media_type", "request_timeout"},
			Complete: func(op *huma.Operation) {
				body := map[string]*huma.MediaType{}
				for _, kind := range []string{"image/jpeg", "image/png", "image/gif", "image/webp"} {
					body[kind] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
				}
				op.RequestBody = &huma.RequestBody{Required: true, Content: body}
				delete(op.Responses, "200")
				op.Responses["201"] = &huma.Response{Description: "The stored picture.", Content: map[string]*huma.MediaType{
					"application/json": {Schema: h.Schemas().Schema(reflect.TypeFor[Picture](), true, "")}}}
			}}), h.uploadPicture)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPatch, "/admin/shops/{number}/pictures/{hash}", "describe-picture", "Change what a picture is said to show",
		pipeline.Route{Status: http.StatusNoContent, Description: "Texts that have the picture keep their own description.", Codes: []string{"picture_not_found"}, Example: `{"alt":"Two moon cakes"}`}), h.describePicture)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodDelete, "/admin/shops/{number}/pictures/{hash}", "delete-picture", "Delete a picture that is not in use",
		pipeline.Route{Status: http.StatusNoContent, Description: "A picture that a current text of the shop, of a drop or of a campaign has is not deleted. Mails that were sent with it show its description from then on.",
			Codes: []string{"picture_not_found", "picture_in_use", "picture_store"}}), h.deletePicture)
}

// PicturePath names a picture of a shop.
type PicturePath struct {
	ShopPath
	Hash string `path:"hash" pattern:"^[0-9a-f]{64}$" doc:"The hash of the picture." example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
}

// PictureText says what a picture shows.
type PictureText struct {
	Alt string `json:"alt" minLength:"1" maxLength:"200" doc:"What the picture shows, for readers who do not see it." example:"Two moon cakes"`
}

func (h *handlers) describePicture(ctx context.Context, in *struct {
	PicturePath
	Body PictureText
}) (*struct{}, error) {
	number, err := pipeline.ParseID("path.number", in.Number)
	if err != nil {
		return nil, err
	}
	return nil, h.Pictures.Describe(ctx, pipeline.ActorOf(ctx), number, in.Hash, in.Body.Alt)
}

func (h *handlers) deletePicture(ctx context.Context, in *PicturePath) (*struct{}, error) {
	number, err := pipeline.ParseID("path.number", in.Number)
	if err != nil {
		return nil, err
	}
	return nil, h.Pictures.Delete(ctx, pipeline.ActorOf(ctx), number, in.Hash)
}

func (h *handlers) listPictures(ctx context.Context, in *struct {
	ShopPath
	Before string `query:"before" pattern:"^[1-9][0-9]{0,18}$" doc:"Pictures with smaller ids."`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"50"`
}) (*struct{ Body PictureList }, error) {
	number, err := pipeline.ParseID("path.number", in.Number)
	before := int64(0)
	if err == nil && in.Before != "" {
		before, err = pipeline.ParseID("query.before", in.Before)
	}
	if err != nil {
		return nil, err
	}
	list, err := h.Pictures.List(ctx, pipeline.ActorOf(ctx), number, before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body PictureList }{}
	if len(list) > in.Limit {
		list = list[:in.Limit]
		out.Body.Next = pipeline.Decimal(list[in.Limit-1].ID)
	}
	out.Body.Pictures = pipeline.Each(list, h.picture)
	return out, nil
}

func (h *handlers) uploadPicture(ctx context.Context, in *struct {
	ShopPath
	Alt  string `query:"alt" required:"true" minLength:"1" maxLength:"200" doc:"What the picture shows." example:"Moon cakes"`
	Name string `query:"name" maxLength:"200" doc:"The name of the file." example:"cakes.png"`
}) (*pipeline.Stream, error) {
	number, err := pipeline.ParseID("path.number", in.Number)
	if err != nil {
		return nil, err
	}
	by := pipeline.ActorOf(ctx)
	return pipeline.Streamed(func(w http.ResponseWriter, r *http.Request) {
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); strings.HasPrefix(kind, "multipart/") {
			h.Problem(r.Context(), pipeline.ErrMediaType.Because("send the file itself, as image/jpeg, image/png, image/gif or image/webp")).Write(w)
			return
		}
		content, err := io.ReadAll(io.LimitReader(r.Body, picture.MaxBytes+1))
		if err != nil {
			h.Problem(r.Context(), pipeline.Refused("body", "ended before its length")).Write(w)
			return
		}
		p, err := h.Pictures.Upload(r.Context(), by, number, in.Name, in.Alt, content)
		if err != nil {
			h.Problem(r.Context(), err).Write(w)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(h.picture(p)) // the client may be gone
	}), nil
}
