package program

import (
	"context"

	adapter "dropbell/adapters/picture"
	"dropbell/adapters/s3"
	"dropbell/domain/picture"
	"dropbell/domain/user"
)

// newPictures returns the use cases of pictures. With a configured S3 store new files go there, and
// files that the database has are read from it.
func (p *program) newPictures() (*picture.Service, error) {
	s := &picture.Service{Store: p.Stores.Pictures, Files: p.Stores.PictureFiles, Converter: adapter.NewConverter()}
	c := p.Config.Pictures
	if c.Endpoint == "" {
		return s, nil
	}
	store, err := s3.New(s3.Config(c))
	if err != nil {
		return nil, err
	}
	s.Files = picture.Both{First: store, Second: p.Stores.PictureFiles}
	return s, nil
}

// claimByLink claims a coupon for the reader of a link; see [links.Claim].
func (p *program) claimByLink(ctx context.Context, by user.ID, templateID int64, key string) error {
	if p.Erased.Has(by) {
		return user.ErrLink
	}
	_, _, err := p.claiming.Tap(ctx, by, templateID, key, p.linkPass(ctx, by, templateID))
	return err
}
