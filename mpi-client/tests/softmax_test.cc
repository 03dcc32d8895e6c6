// The mathematics of train-digits: gradient, descent, weights on disk.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "temporary_folder.h"

extern "C" {
#include "softmax.h"
}

namespace supply_test {
namespace {

struct Image {
    uint8_t pixels[SOFTMAX_PIXELS];
    int label;
};

std::vector<Image> random_images(size_t count) {
    std::mt19937 generator(1);
    std::vector<Image> images(count);
    for (size_t i = 0; i < count; i++) {
        images[i].label = static_cast<int>(i % SOFTMAX_CLASSES);
        for (uint8_t &pixel : images[i].pixels) pixel = static_cast<uint8_t>(generator() % 17);
    }
    return images;
}

softmax_sums sums_of(const softmax &model, const std::vector<Image> &images) {
    softmax_sums sums = {};
    for (const Image &image : images) softmax_add(&model, image.pixels, image.label, &sums);
    return sums;
}

softmax random_model() {
    std::mt19937 generator(2);
    std::uniform_real_distribution<double> weight(-1, 1);
    softmax model;
    for (auto &row : model.weights)
        for (double &value : row) value = weight(generator);
    return model;
}

TEST(SoftmaxTest, WithoutWeightsEveryClassIsAsLikely) {
    const softmax model = {};
    const softmax_sums sums = sums_of(model, random_images(50));
    EXPECT_EQ(50, sums.elements);
    EXPECT_NEAR(50 * std::log(10.0), sums.loss, 1e-9);
}

TEST(SoftmaxTest, TheGradientIsThatOfTheLoss) {
    softmax model = random_model();
    const std::vector<Image> images = random_images(7);
    const softmax_sums sums = sums_of(model, images);
    const double step = 1e-5;
    for (int c = 0; c < SOFTMAX_CLASSES; c++)
        for (int i = 0; i <= SOFTMAX_PIXELS; i += 8) { // pixels, and with 64 the bias
            const double weight = model.weights[c][i];
            model.weights[c][i] = weight + step;
            const double above = sums_of(model, images).loss;
            model.weights[c][i] = weight - step;
            const double below = sums_of(model, images).loss;
            model.weights[c][i] = weight;
            EXPECT_NEAR((above - below) / (2 * step), sums.gradient[c][i], 1e-5) << c << " " << i;
        }
}

TEST(SoftmaxTest, HugeScoresDoNotOverflow) {
    softmax model = {};
    for (double &weight : model.weights[3]) weight = 1e6;
    std::vector<Image> images = random_images(1);
    images[0].label = 3;
    const softmax_sums right = sums_of(model, images);
    EXPECT_EQ(1, right.correct);
    EXPECT_EQ(0, right.loss);
    images[0].label = 4;
    EXPECT_TRUE(std::isfinite(sums_of(model, images).loss));
}

TEST(SoftmaxTest, DescendingLearnsWhatCanBeTold) {
    std::vector<Image> images = random_images(100);
    for (Image &image : images) image.pixels[image.label] = 16, image.pixels[(image.label + 1) % 10] = 0;
    softmax model = {};
    const double loss_before = sums_of(model, images).loss;
    for (int step = 0; step < 300; step++) {
        const softmax_sums sums = sums_of(model, images);
        softmax_descend(&model, &sums, 0.5);
    }
    const softmax_sums after = sums_of(model, images);
    EXPECT_EQ(100, after.correct);
    EXPECT_LT(after.loss, loss_before / 10);
}

TEST(SoftmaxTest, WeightsComeBackFromDiskAsTheyWere) {
    TemporaryFolder folder;
    const softmax model = random_model();
    ASSERT_TRUE(softmax_save(&model, folder.file("weights").c_str()));
    softmax loaded = {};
    ASSERT_TRUE(softmax_load(&loaded, folder.file("weights").c_str()));
    for (int c = 0; c < SOFTMAX_CLASSES; c++)
        for (int i = 0; i <= SOFTMAX_PIXELS; i++) EXPECT_EQ(model.weights[c][i], loaded.weights[c][i]);
}

TEST(SoftmaxTest, WhatIsNoWeightsIsRefused) {
    TemporaryFolder folder;
    const softmax model = random_model();
    ASSERT_TRUE(softmax_save(&model, folder.file("weights").c_str()));
    const std::string text = read_file(folder.file("weights"));
    softmax loaded;
    errno = 0;
    EXPECT_FALSE(softmax_load(&loaded, folder.write("short", text.substr(0, text.size() / 2)).c_str()));
    EXPECT_EQ(0, errno);
    EXPECT_FALSE(softmax_load(&loaded, folder.write("long", text + "1").c_str()));
    EXPECT_FALSE(softmax_load(&loaded, folder.write("words", "hello").c_str()));
    EXPECT_FALSE(softmax_load(&loaded, folder.file("absent").c_str()));
    EXPECT_EQ(ENOENT, errno);
    EXPECT_FALSE(softmax_save(&loaded, folder.file("absent/weights").c_str()));
}

} // namespace
} // namespace supply_test
