package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// batchOf is how many messages a batch has here.
const batchOf = 5

// silence is how long nothing may come.
const silence = 500 * time.Millisecond

// acknowledgements of messages of batches: what is acknowledged does not come again.
func acknowledgements(cases *Cases, client pulsar.Client) {
	for _, kind := range []struct {
		name string
		kind pulsar.SubscriptionType
	}{{"Shared", pulsar.Shared}, {"Exclusive", pulsar.Exclusive}} {
		topic := "go-acks-" + kind.name
		cases.play(kind.name+": messages of a batch are acknowledged singly", "m0 m2 m4", func() (string, error) {
			return twice(client, topic, kind.kind, func(consumer pulsar.Consumer, messages []pulsar.Message) error {
				for _, index := range []int{1, 3} {
					if err := consumer.Ack(messages[index]); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	cases.play("cumulatively within a batch", "m3 m4", func() (string, error) {
		return twice(client, "go-acks-cumulative", pulsar.Exclusive, func(consumer pulsar.Consumer, messages []pulsar.Message) error {
			return consumer.AckCumulative(messages[2])
		})
	})
	cases.play("a negative acknowledgement brings what is left", "m3:1 m4:1", func() (string, error) {
		return nacked(client, "go-acks-nack")
	})
	cases.play("a seek into a batch", "m2 m3 m4", func() (string, error) {
		return sought(client, "go-acks-seek")
	})
}

// twice receives a batch, acknowledges with a receipt, and tells what a second consumer gets.
func twice(
	client pulsar.Client, topic string, kind pulsar.SubscriptionType,
	acknowledge func(pulsar.Consumer, []pulsar.Message) error,
) (string, error) {
	consumer, messages, err := batch(client, topic, kind)
	if err != nil {
		return "", err
	}
	if err := acknowledge(consumer, messages); err != nil {
		return "", err
	}
	consumer.Close()
	consumer, err = subscribe(client, topic, kind)
	if err != nil {
		return "", err
	}
	defer consumer.Close()
	return strings.Join(all(consumer, false), " "), nil
}

func nacked(client pulsar.Client, topic string) (string, error) {
	consumer, messages, err := batch(client, topic, pulsar.Shared)
	if err != nil {
		return "", err
	}
	defer consumer.Close()
	for _, message := range messages[:3] {
		if err := consumer.Ack(message); err != nil {
			return "", err
		}
	}
	for _, message := range messages[3:] {
		consumer.Nack(message)
	}
	return strings.Join(all(consumer, true), " "), nil
}

func sought(client pulsar.Client, topic string) (string, error) {
	consumer, messages, err := batch(client, topic, pulsar.Exclusive)
	if err != nil {
		return "", err
	}
	defer consumer.Close()
	if err := consumer.Seek(messages[2].ID()); err != nil {
		return "", err
	}
	return strings.Join(all(consumer, false), " "), nil
}

// batch sends one batch and receives it.
func batch(client pulsar.Client, topic string, kind pulsar.SubscriptionType) (pulsar.Consumer, []pulsar.Message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	consumer, err := subscribe(client, topic, kind)
	if err != nil {
		return nil, nil, err
	}
	producer, err := client.CreateProducer(pulsar.ProducerOptions{
		Topic: topic, BatchingMaxMessages: batchOf, BatchingMaxPublishDelay: wait,
	})
	if err != nil {
		return nil, nil, err
	}
	defer producer.Close()
	for number := range batchOf {
		payload := fmt.Appendf(nil, "m%d", number)
		producer.SendAsync(ctx, &pulsar.ProducerMessage{Payload: payload}, func(pulsar.MessageID, *pulsar.ProducerMessage, error) {})
	}
	if err := producer.FlushWithCtx(ctx); err != nil {
		return nil, nil, err
	}
	var messages []pulsar.Message
	for range batchOf {
		message, err := consumer.Receive(ctx)
		if err != nil {
			return nil, nil, err
		}
		messages = append(messages, message)
	}
	return consumer, messages, nil
}

func subscribe(client pulsar.Client, topic string, kind pulsar.SubscriptionType) (pulsar.Consumer, error) {
	return client.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: "s", Type: kind,
		EnableBatchIndexAcknowledgment: true,
		AckWithResponse:                true,
		StartMessageIDInclusive:        true,
		NackRedeliveryDelay:            100 * time.Millisecond,
	})
}

// all is what a consumer gets until nothing comes.
func all(consumer pulsar.Consumer, counts bool) []string {
	var texts []string
	for {
		limit := wait
		if len(texts) > 0 {
			limit = silence
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		message, err := consumer.Receive(ctx)
		cancel()
		if err != nil {
			sort.Strings(texts)
			return texts
		}
		text := string(message.Payload())
		if counts {
			text += fmt.Sprintf(":%d", message.RedeliveryCount())
		}
		texts = append(texts, text)
		if counts && len(texts) == 2 {
			sort.Strings(texts)
			return texts
		}
	}
}
